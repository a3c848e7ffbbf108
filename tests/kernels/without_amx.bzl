"""Tests of kernels that have one implementation with AMX and one without."""

def with_and_without_amx_test(name, **kwargs):
    """The test `name`, and <name>_without_amx of the same with AVX-512 at most.

    Args:
      name: the test's.
      **kwargs: as cc_test has them.
    """
    native.cc_test(name = name, **kwargs)
    native.cc_test(
        name = name + "_without_amx",
        env = {"SFMAMBA_CPU_ISA": "avx512"},
        **kwargs
    )
