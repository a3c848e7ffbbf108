// Defines the default options of AddressSanitizer and
// UndefinedBehaviorSanitizer, and the list of leaks that LeakSanitizer does not
// report. This file is linked into each binary of --config=asan. The run-time
// libraries of the sanitizers call its functions.

extern "C" const char* __asan_default_options() {
  // Some tests make a thousand huge allocations that must fail. By default, the
  // sanitizer ends the process at such an allocation. The option
  // allocator_may_return_null makes the allocation fail instead.
  return "allocator_may_return_null=1:detect_stack_use_after_return=0";
}

extern "C" const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}

extern "C" const char* __lsan_default_suppressions() {
  // libtorch's registries of operators are never freed.
  return "leak:libtorch_cpu.so\n";
}
