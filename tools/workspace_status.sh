#!/bin/bash
# Prints what Bazel stamps into binaries: the commit, with "-dirty" if files differ from it. Where
# there is no git, as in images, the environment variable REVISION is printed instead.
echo "BUILD_SCM_REVISION ${REVISION:-$(git describe --always --abbrev=40 --dirty --match='' 2>/dev/null || echo unknown)}"
