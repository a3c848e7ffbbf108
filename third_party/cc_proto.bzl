"""cc_proto: C++ (and gRPC) code from .proto files by the system's protoc."""

def cc_proto(name, srcs, deps = [], grpc = False):
    """Makes a cc_library whose headers are included relative to the package.

    Args:
      name: the library's name.
      srcs: .proto files; imports are relative to the package.
      deps: other cc_proto targets of the same package.
      grpc: whether to generate services too.
    """
    protos = name + "_protos"
    native.filegroup(
        name = protos,
        srcs = srcs + [d.lstrip(":") + "_protos" for d in deps],
        visibility = ["//visibility:private"],
    )
    kinds = [".pb"] + ([".grpc.pb"] if grpc else [])
    stems = [s[:-len(".proto")] for s in srcs]
    outs = [s + k + e for s in stems for k in kinds for e in [".h", ".cc"]]
    here = native.package_name()
    flags = "--cpp_out=$(RULEDIR)"
    if grpc:
        flags += (" --grpc_out=$(RULEDIR)" +
                  " --plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin")
    native.genrule(
        name = name + "_generate",
        srcs = [protos],
        outs = outs,
        cmd = "/usr/bin/protoc -I %s -I /usr/include %s %s" % (
            here,
            flags,
            " ".join([here + "/" + s for s in srcs]),
        ),
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = [o for o in outs if o.endswith(".cc")],
        hdrs = [o for o in outs if o.endswith(".h")],
        copts = ["-w"],
        includes = ["."],
        deps = deps + ["@system//:grpc" if grpc else "@system//:protobuf"],
    )
