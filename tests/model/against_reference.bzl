"""Tests of the network's parts with every implementation, against the reference."""

load("//third_party/libtorch:precompiled.bzl", "ATEN")

# The instruction sets to test besides the best one of the machine.
INSTRUCTION_SETS = ["avx512", "avx2", "scalar"]

def against_reference_test(name, deps, size = "small", srcs = []):
    """The test `name` of <name>.cc, and its cases alone, <name>_cases.

    Args:
      name: <part>_test, usually.
      deps: what the cases need besides gtest and the fixture.
      size: the test's size.
      srcs: headers of the package that <name>.cc includes.
    """
    native.cc_library(
        name = name + "_cases",
        testonly = True,
        srcs = [name + ".cc"] + srcs,
        copts = ATEN,
        visibility = ["//visibility:private"],
        deps = deps + [
            "//tests/model:against_reference",
            "@libtorch//:torch",
            "@system//:gtest_main",
        ],
        alwayslink = True,
    )
    native.cc_test(
        name = name,
        size = size,
        deps = [":" + name + "_cases"],
    )

def on_each_instruction_set(name):
    """Tests <name>_<instruction set>_test of the cases of every against_reference_test above."""
    cases = [
        ":" + rule
        for rule in native.existing_rules()
        if rule.endswith("_test_cases")
    ]
    for isa in INSTRUCTION_SETS:
        native.cc_test(
            name = "%s_%s_test" % (name, isa),
            size = "medium",  # It contains all parts, and other tests run at the same time.
            env = {"SFMAMBA_CPU_ISA": isa},
            deps = cases,
        )
