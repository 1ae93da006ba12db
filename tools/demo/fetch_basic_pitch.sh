#!/usr/bin/env bash
# Fetches the basic-pitch 0.4.0 wheel from PyPI (758 kB), checks it, and unpacks its SavedModel.
#
#   tools/demo/fetch_basic_pitch.sh [FOLDER]     (default: build/demo)
#
# Prints the folder of the SavedModel, FOLDER/basic_pitch/saved_models/icassp_2022/nmp. Nothing of the package
# is installed or run. Does nothing when the model is there already.
set -euo pipefail

VERSION=0.4.0
SHA256=738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0
MODEL=basic_pitch/saved_models/icassp_2022/nmp

folder=${1:-$(cd "$(dirname "$0")/../.." && pwd)/build/demo}
mkdir -p "$folder"
cd "$folder"
if [ ! -f "$MODEL/saved_model.pb" ]; then
    echo "downloading basic-pitch $VERSION into $folder" >&2
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest . "basic-pitch==$VERSION" >&2
    wheel=basic_pitch-$VERSION-py2.py3-none-any.whl
    echo "$SHA256  $wheel" | sha256sum --check --quiet
    python3 - "$wheel" "$MODEL" <<'PYTHON'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    wheel.extractall(members=[n for n in wheel.namelist() if n.startswith(sys.argv[2] + "/")])
PYTHON
fi
echo "$folder/$MODEL"
