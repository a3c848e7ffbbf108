// Compiled at link time, with what tools/workspace_status.sh says defined.

namespace sfmamba::server {

const char* BuildRevision() { return BUILD_SCM_REVISION; }

}  // namespace sfmamba::server
