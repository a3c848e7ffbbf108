"""A kernel that is compiled once for each instruction set."""

# The compiler must not contract a * b + c into one rounding, so that each copy
# of an expression gives the same bits. gcc 12 warns of uninitialised values in
# its own AVX-512 headers, so these two warnings are off.
_COMMON = [
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-Wno-maybe-uninitialized",
    "-Wno-uninitialized",
]

_COPTS = {
    "avx2": _COMMON + ["-mavx2", "-mfma"],
    "avx512": _COMMON + [
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mfma",
    ],
}

# Replaces "Isa" in "VecIsa" and "BytesIsa", and "_isa" in the names of their
# headers. For example, VecIsa becomes Vec8 for AVX2.
_VECTOR = {"avx2": "8", "avx512": "16"}

def isa_libraries(name, deps, testonly = False):
    """Defines <name>_avx2 and <name>_avx512 from <name>.h, <name>_simd.h and <name>_isa.cc.

    <name>_simd.h has templates over a vector type. <name>_isa.cc uses them to
    define the functions of <name>.h for one instruction set. It names the
    vector type VecIsa or BytesIsa, and a function FooIsa. The two libraries
    replace these names: FooIsa becomes FooAvx2 and FooAvx512.

    Args:
      name: the kernel's name.
      deps: libraries that the three files include, besides the vectors.
      testonly: as in all rules.
    """
    for isa, copts in _COPTS.items():
        source = name + "_" + isa + ".cc"
        native.genrule(
            name = name + "_" + isa + "_source",
            testonly = testonly,
            srcs = [name + "_isa.cc"],
            outs = [source],
            cmd = "sed -e 's/\\(Vec\\|Bytes\\)Isa\\b/\\1%s/g' -e 's/_isa\\.h/%s.h/' -e 's/Isa\\b/%s/g' $< > $@" % (
                _VECTOR[isa],
                _VECTOR[isa],
                isa.capitalize(),
            ),
            visibility = ["//visibility:private"],
        )
        native.cc_library(
            name = name + "_" + isa,
            testonly = testonly,
            srcs = [
                source,
                name + ".h",
                name + "_simd.h",
            ],
            copts = copts,
            visibility = ["//visibility:private"],
            deps = deps + ["//kernels/simd:vectors"],
        )

def isa_copts(isa):
    """Returns the compiler options for "avx2" or "avx512"."""
    return _COPTS[isa]

def amx_copts():
    """Returns the compiler options for AMX tiles and AVX512-BF16."""
    return isa_copts("avx512") + ["-mavx512bf16", "-mamx-tile", "-mamx-bf16"]

def simd_kernel(name, deps, more = [], **kwargs):
    """Defines library `name` from <name>.h, <name>_cpu.cc and isa_libraries().

    Args:
      name: the kernel's name.
      deps: libraries that the kernel's files include, besides the vectors.
      more: libraries that define functions of <name>.h for other instruction sets.
      **kwargs: visibility.
    """
    isa_libraries(name, deps)
    native.cc_library(
        name = name,
        srcs = [name + "_cpu.cc"],
        hdrs = [name + ".h"],
        deps = deps + more + [":%s_%s" % (name, isa) for isa in _COPTS],
        **kwargs
    )
