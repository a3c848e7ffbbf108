#ifndef SFMAMBA_SERVER_HOST_DESCRIPTORS_H_
#define SFMAMBA_SERVER_HOST_DESCRIPTORS_H_

namespace sfmamba::server {

// Raises the limit of the process's open descriptors (RLIMIT_NOFILE) as far as
// it is allowed to.
void RaiseDescriptorLimit();

// Opens /dev/null in place of standard input, output and error where a caller
// has closed them, so that no connection gets their numbers, and the log's
// lines.
void FillStandardDescriptors();

// How many descriptors the process may have open; each has a number below.
int DescriptorLimit();

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_HOST_DESCRIPTORS_H_
