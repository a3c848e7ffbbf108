"""A kernel with one source file per instruction set."""

# Contraction is off so that every copy of an expression rounds alike. gcc 12
# warns of uninitialised values inside its own AVX-512 headers.
_COMMON = [
    "-O3",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-Wno-maybe-uninitialized",
    "-Wno-uninitialized",
]

# The flags of each instruction set's files, by the ending of their names.
SIMD_COPTS = {
    "avx2": _COMMON + ["-mavx2", "-mfma"],
    "avx512": _COMMON + [
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mfma",
    ],
}

def simd_kernel(name, deps):
    """Library `name` of <name>.h and <name>_{cpu,avx2,avx512}.cc."""
    for isa, copts in SIMD_COPTS.items():
        native.cc_library(
            name = name + "_" + isa,
            srcs = [
                name + ".h",
                name + "_" + isa + ".cc",
                name + "_simd.h",
            ],
            copts = copts,
            visibility = ["//visibility:private"],
            deps = deps + [":simd"],
        )
    native.cc_library(
        name = name,
        srcs = [name + "_cpu.cc"],
        hdrs = [name + ".h"],
        deps = deps + [":" + name + "_" + isa for isa in SIMD_COPTS],
    )
