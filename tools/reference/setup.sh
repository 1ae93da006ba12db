#!/usr/bin/env bash
# Makes the virtual environment with the reference (tensorflow-cpu 2.21.0 from PyPI) outside the repository.
#
#   tools/reference/setup.sh           install if missing, print the folder
#   tools/reference/setup.sh --where   print the folder; exit 1 and say so when it is not installed
#
# The folder is $FERROFLOW_REFERENCE, else ferroflow/reference in the user's cache folder.
set -euo pipefail

VERSION=2.21.0
folder=${FERROFLOW_REFERENCE:-${XDG_CACHE_HOME:-$HOME/.cache}/ferroflow/reference}

installed() {
    [ -x "$folder/bin/python" ] && compgen -G "$folder/lib/python3*/site-packages/tensorflow/libtensorflow_cc.so.2" >/dev/null
}

if [ "${1:-}" = --where ]; then
    if installed; then
        echo "$folder"
        exit 0
    fi
    echo "the reference is not installed in $folder; run tools/reference/setup.sh (about a minute, 1.5 GB)" >&2
    exit 1
fi

if ! installed; then
    echo "creating a virtual environment in $folder" >&2
    mkdir -p "$(dirname "$folder")"
    python3 -m venv "$folder"
    echo "installing tensorflow-cpu==$VERSION with its dependencies" >&2
    "$folder/bin/pip" install --quiet --disable-pip-version-check "tensorflow-cpu==$VERSION"
    "$folder/bin/pip" list --disable-pip-version-check >&2
fi
echo "$folder"
