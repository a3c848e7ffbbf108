"""fuzz_target: a fuzzer that tests/fuzz/run.sh builds and runs."""

def fuzz_target(name, deps):
    """Makes the fuzzer <name>_fuzz of <name>_fuzz.cc.

    Only --config=fuzz links it, so that wildcards leave it out. Its corpus lies
    in corpus/<name>.

    Args:
      name: what is fuzzed.
      deps: what the file includes, besides check.h.
    """
    native.cc_binary(
        name = name + "_fuzz",
        testonly = True,
        srcs = [name + "_fuzz.cc"],
        linkopts = ["-fsanitize=fuzzer"],
        tags = [
            "fuzz",
            "manual",
        ],
        deps = [":check"] + deps,
    )
