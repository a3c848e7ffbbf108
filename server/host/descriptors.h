#ifndef SFMAMBA_SERVER_HOST_DESCRIPTORS_H_
#define SFMAMBA_SERVER_HOST_DESCRIPTORS_H_

namespace sfmamba::server {

// Raises the process's limit of open file descriptors (RLIMIT_NOFILE) to the
// hard limit.
void RaiseDescriptorLimit();

// Opens /dev/null in place of each standard stream (input, output or error)
// that is closed. If standard error stayed closed, a new connection could get
// descriptor number 2. Output for standard error would then go to the client.
void FillStandardDescriptors();

// Returns the maximum number of open file descriptors, or 0 if the limit cannot
// be read. Every descriptor is below this number.
int DescriptorLimit();

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_DESCRIPTORS_H_
