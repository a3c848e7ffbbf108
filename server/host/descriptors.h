#ifndef SFMAMBA_SERVER_HOST_DESCRIPTORS_H_
#define SFMAMBA_SERVER_HOST_DESCRIPTORS_H_

namespace sfmamba::server {

// Raises the process's limit of open file descriptors (RLIMIT_NOFILE) to the
// hard limit.
void RaiseDescriptorLimit();

// Opens /dev/null for each of standard input, output and error that is closed.
// If one stayed closed, a new connection could get its descriptor number and
// would then receive the log's output.
void FillStandardDescriptors();

// Returns the maximum number of open file descriptors. Every descriptor is
// below this number.
int DescriptorLimit();

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_DESCRIPTORS_H_
