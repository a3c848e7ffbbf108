"""Tests of CUDA kernels, compiled once for the emulator and for a GPU."""

def device_test(name, emulated, deps = []):
    """The test `name` of <name>.cc, on the emulator, and its cases alone, <name>_cases.

    Args:
      name: <kernel>_cuda_test, usually.
      emulated: the kernels it runs: their headers for the cases, and what
        //tests/emulator makes of them for the test.
      deps: what else the cases need.
    """
    native.cc_library(
        name = name + "_cases",
        testonly = True,
        srcs = [name + ".cc"],
        visibility = ["//visibility:private"],
        deps = deps + [kernel + "_header" for kernel in emulated] + [
            "//tests/kernels/cuda:device_memory",
            "@system//:gtest_main",
        ],
        alwayslink = True,
    )
    native.cc_test(
        name = name,
        size = "medium",
        deps = [
            ":" + name + "_cases",
            "//tests/emulator:device_memory",
        ] + ["//tests/emulator:" + kernel.split(":")[1] for kernel in emulated],
    )

def device_cases(name):
    """Library `name`: the cases of every device_test above, for //tests/gpu:suite."""
    native.cc_library(
        name = name,
        testonly = True,
        visibility = ["//tests/gpu:__pkg__"],
        deps = [
            ":" + rule
            for rule in native.existing_rules()
            if rule.endswith("_test_cases")
        ],
    )
