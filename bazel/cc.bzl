"""Libraries and tests that are called like their files."""

def library(name, **kwargs):
    """The cc_library `name` of <name>.h and, where it is, <name>.cc.

    Args:
      name: the library's and its files'.
      **kwargs: as cc_library has them, except srcs and hdrs.
    """
    native.cc_library(
        name = name,
        srcs = native.glob([name + ".cc"], allow_empty = True),
        hdrs = [name + ".h"],
        **kwargs
    )

def test(name, deps = [], **kwargs):
    """The cc_test `name` of <name>.cc, with GoogleTest and its main().

    Args:
      name: the test's and its file's.
      deps: what the file includes besides.
      **kwargs: as cc_test has them, except srcs.
    """
    native.cc_test(
        name = name,
        srcs = [name + ".cc"],
        deps = deps + ["@system//:gtest_main"],
        **kwargs
    )
