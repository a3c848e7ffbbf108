// How the run-time libraries of AddressSanitizer, LeakSanitizer and
// UndefinedBehaviorSanitizer, which call these functions, are set, and what
// they do not report. Linked into each binary of --config=asan.

extern "C" const char* __asan_default_options() {
  // A thousand huge allocations that are refused are what some tests are about.
  return "allocator_may_return_null=1:detect_stack_use_after_return=0";
}

extern "C" const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}

extern "C" const char* __lsan_default_suppressions() {
  // libtorch keeps its registries of operators until the process ends.
  return "leak:libtorch_cpu.so\n";
}
