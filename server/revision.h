#ifndef SFMAMBA_SERVER_REVISION_H_
#define SFMAMBA_SERVER_REVISION_H_

namespace sfmamba::server {

// Returns the commit of the build, with "-dirty" appended if files had
// uncommitted changes. Returns "unknown" if git was not available.
//
// revision.cc contains only this function. After a new commit, only revision.cc
// is compiled again.
const char* BuildRevision();

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_REVISION_H_
