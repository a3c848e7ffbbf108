#ifndef SFMAMBA_SERVER_REVISION_H_
#define SFMAMBA_SERVER_REVISION_H_

namespace sfmamba::server {

// Returns the commit of the build. Appends "-dirty" if files had uncommitted
// changes. Returns "unknown" without git. This function is compiled at link
// time, so a new commit alone recompiles nothing else.
const char* BuildRevision();

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_REVISION_H_
