#ifndef SFMAMBA_SERVER_REVISION_H_
#define SFMAMBA_SERVER_REVISION_H_

namespace sfmamba::server {

// Returns the commit of the build, with "-dirty" appended if files had
// uncommitted changes. Returns "unknown" without git. This function is compiled
// at link time. A new commit therefore does not recompile other code.
const char* BuildRevision();

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_REVISION_H_
