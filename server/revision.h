#ifndef SFMAMBA_SERVER_REVISION_H_
#define SFMAMBA_SERVER_REVISION_H_

namespace sfmamba::server {

// The commit that was built, "-dirty" after it if files differed; "unknown"
// without git. Compiled when the binary is linked, so that a new commit alone
// builds nothing.
const char* BuildRevision();

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_REVISION_H_
