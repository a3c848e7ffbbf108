// Prints the description of REST, for tests in Python.

#include <iostream>

#include "server/rest/open_api.h"

int main() { std::cout << sfmamba::rest::OpenApi(); }
