#!/usr/bin/env bash
# Puts NVIDIA's assembler for PTX (`ptxas`, of the PyPI package nvidia-cuda-nvcc) into the user's cache folder, for the
# test that assembles what the compiler emits for GPUs (src/codegen/tests/ptx.rs). No GPU is needed.
#
#   tools/ptxas.sh           install if missing, print the path
#   tools/ptxas.sh --where   print the path; exit 1 and say so when there is none
#
# FERROFLOW_PTXAS names another one.
set -euo pipefail

VERSION=13.5.37
folder=${XDG_CACHE_HOME:-$HOME/.cache}/ferroflow/ptxas-$VERSION
ptxas=${FERROFLOW_PTXAS:-$folder/nvidia/cu13/bin/ptxas}

if [ ! -x "$ptxas" ] && [ "${1:-}" = --where ]; then
    echo "there is no $ptxas; run tools/ptxas.sh (47 MB)" >&2
    exit 1
fi
if [ ! -x "$ptxas" ]; then
    download=$(mktemp -d)
    trap 'rm -rf "$download"' EXIT
    python3 -m venv "$download/venv" >&2
    "$download/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps -d "$download" \
        "nvidia-cuda-nvcc==$VERSION" >&2
    mkdir -p "$folder"
    python3 - "$download" "$folder" <<'EOF'
import pathlib, sys, zipfile
wheel = next(pathlib.Path(sys.argv[1]).glob("*.whl"))
with zipfile.ZipFile(wheel) as archive:
    name = next(name for name in archive.namelist() if name.endswith("/bin/ptxas"))
    archive.extract(name, sys.argv[2])
    (pathlib.Path(sys.argv[2]) / name).chmod(0o755)
EOF
fi
echo "$ptxas"
