"""The inline assembly of the CUDA kernels that emulated_gpu.py compiles for the host, as C++."""

IF = "{{ .reg .pred p; setp.ne.u32 p, %{}, 0; {} }}".format

# What an instruction does to the operands of its statement, of which {0} is the first. An operand
# is an expression of the source: the wrong one there is the wrong one here.
ASSEMBLY = {
    "ex2.approx.ftz.f32 %0, %1;": "{0} = emulated::exp2({1});",
    "rcp.approx.ftz.f32 %0, %1;": "{0} = emulated::reciprocal({1});",
    "slct.f32.f32 %0, %1, %2, %3;": "{0} = {3} >= 0.0f ? {1} : {2};",
    IF(3, "selp.f32 %0, %2, %1, p;"): "{0} = {3} != 0 ? {2} : {1};",
    IF(2, "@p st.global.u32 [%0], %1;"): "if ({2} != 0) memcpy({0}, &{1}, 4);",
    IF(2, "@p st.global.u16 [%0], %1;"): "if ({2} != 0) memcpy({0}, &{1}, 2);",
    IF(2, "@p ld.global.f32 %0, [%1];"): "if ({2} != 0) memcpy(&{0}, {1}, 4);",
    IF(2, "@p ld.global.u16 %0, [%1];"): "if ({2} != 0) memcpy(&{0}, {1}, 2);",
    IF(1, "@p prefetch.global.L2 [%0];"): ";",
    IF(5, "@p ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"): (
        "if ({5} != 0) emulated::load_words({4}, {0}, {1}, {2}, {3});"
    ),
    "bar.sync 0;": "emulated::wait_for_block();",
    # The beginnings of two in macros.
    "mma.sync.aligned.": (
        "emulated::mma(shape, type, {0}, {1}, {2}, {3}, {{{4}, {5}, {6}, {7}, {8}, {9}}});"
    ),
    "cvt.rn.": "{0} = emulated::rounded_pair(type, {1}, {2});",
    "": ";",
    "ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];": (
        "emulated::load_words({4}, {0}, {1}, {2}, {3});"
    ),
    "ld.relaxed.gpu.global.v2.u64 {%0,%1}, [%2];": "__builtin_trap();",
    "st.relaxed.gpu.global.u32 [%0], %1;": "emulated::store_words({0}, {1});",
    "st.relaxed.gpu.global.v2.u32 [%0], {%1,%2};": "emulated::store_words({0}, {1}, {2});",
    "st.relaxed.gpu.global.v4.u32 [%0], {%1,%2,%3,%4};": (
        "emulated::store_words({0}, {1}, {2}, {3}, {4});"
    ),
    "st.relaxed.gpu.global.v2.u64 [%0], {%1,%2};": "__builtin_trap();",
    "fence.acq_rel.gpu;": ";",
    "st.global.cs.u32 [%0], %1;": "emulated::store_words({0}, {1});",
    "st.global.cs.v2.f32 [%0], {%1,%2};": (
        "emulated::store_words({0}, __float_as_uint({1}), __float_as_uint({2}));"
    ),
    "st.global.cs.v2.f64 [%0], {%1,%2};": "__builtin_trap();",
    "cp.async.ca.shared.global [%0], [%1], %2;": "emulated::copy_async({0}, {1}, {2});",
    "cp.async.commit_group;": "emulated::end_copies();",
    "cp.async.wait_group %0;": "emulated::wait_for_copies({0});",
    "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, ": (
        "__builtin_trap();"
    ),
    # Of clusters, which the emulated GPU has not.
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;": ";",
    "mapa.shared::cluster.u32 %0, %1, %2;": ";",
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1,%2}, [%3];": ";",
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f64 [%0], {%1,%2}, [%3];": ";",
    "mbarrier.init.shared::cta.b64 [%0], 1;": ";",
    "fence.mbarrier_init.release.cluster;": ";",
    "{\\n": ";",
    "barrier.cluster.arrive.release.aligned;\\n": ";",
    "griddepcontrol.wait;": ";",  # behind an #if too, but beside a launch
    "griddepcontrol.launch_dependents;": ";",
    "ld.global.v2.u32 {%0, %1}, [%2];": "emulated::load_words({2}, {0}, {1});",
    "ld.global.v4.u32 {%0, %1, %2, %3}, [%4];": "emulated::load_words({4}, {0}, {1}, {2}, {3});",
    "st.global.v2.u32 [%0], {%1, %2};": "emulated::store_words({0}, {1}, {2});",
    "st.global.v4.u32 [%0], {%1, %2, %3, %4};": "emulated::store_words({0}, {1}, {2}, {3}, {4});",
}
