#!/bin/bash
# What Bazel stamps into binaries: the commit, "-dirty" after it if files differ.
# REVISION says it where there is no git, as in images.
echo "BUILD_SCM_REVISION ${REVISION:-$(git describe --always --abbrev=40 --dirty --match='' 2>/dev/null || echo unknown)}"
