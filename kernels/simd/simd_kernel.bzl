"""A kernel that is compiled once for each instruction set."""

# Contraction is off so that every copy of an expression rounds alike. gcc 12
# warns of uninitialised values inside its own AVX-512 headers.
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

# What "Isa" becomes in "VecIsa" and "BytesIsa", and "_isa" in the names of their
# headers.
_VECTOR = {"avx2": "8", "avx512": "16"}

def isa_libraries(name, deps, testonly = False):
    """Libraries <name>_avx2 and <name>_avx512 of <name>.h, <name>_simd.h and <name>_isa.cc.

    <name>_isa.cc defines <name>.h's functions of one instruction set by what
    <name>_simd.h does with any vector: it writes VecIsa or BytesIsa for the
    vector and Isa at the end of the functions' names, FooIsa for FooAvx2 and
    FooAvx512.

    Args:
      name: the kernel's.
      deps: what the three files include besides the vectors.
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
    """The options to compile for "avx2" or "avx512" by."""
    return _COPTS[isa]

def amx_copts():
    """The options to compile for AMX's tiles and AVX512-BF16 by."""
    return isa_copts("avx512") + ["-mavx512bf16", "-mamx-tile", "-mamx-bf16"]

def simd_kernel(name, deps, more = [], **kwargs):
    """Library `name` of <name>.h, <name>_cpu.cc and isa_libraries().

    Args:
      name: the kernel's.
      deps: what its files include besides the vectors.
      more: libraries of its header's functions for further instruction sets.
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
