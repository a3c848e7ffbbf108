"""link_only: what is linked behind an interface that other targets compile against."""

def _impl(ctx):
    return [CcInfo(linking_context = ctx.attr.dep[CcInfo].linking_context)]

link_only = rule(
    implementation = _impl,
    attrs = {"dep": attr.label(providers = [CcInfo], mandatory = True)},
    doc = """Links `dep`, a cc_library, but adds none of its headers and flags.

So a build with another `dep` compiles the users of this target no other way.""",
)
