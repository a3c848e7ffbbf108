// This file is compiled each time the binary is linked.
// tools/workspace_status.sh provides the commit as the macro
// BUILD_SCM_REVISION.

namespace sfmamba::server {

const char* BuildRevision() { return BUILD_SCM_REVISION; }

}  // namespace sfmamba::server
