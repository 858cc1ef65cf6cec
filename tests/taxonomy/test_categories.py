from __future__ import annotations

from pathlib import Path

import pytest

from overhead_lens.errors import UsageError
from overhead_lens.readers.py_spy.stacks import parse_stacks
from overhead_lens.stack import Stack
from overhead_lens.taxonomy.categories import HOST_CATEGORIES, OPTIONAL_PARTS, PARTS
from overhead_lens.taxonomy.classifier import default_classifier
from overhead_lens.taxonomy.host import Part, parts_of
from overhead_lens.taxonomy.names import display_name, gil_held_by
from overhead_lens.taxonomy.rules import Attribution, load_rules, without_return_type
from overhead_lens.taxonomy.torch_names import operator_of_entry
from tests.drawn.stacks import BINDING, CLASSIFIER, ENTRY, LOOP, USER, attribution, claimed, stack

EVAL_FRAME = "dynamo__custom_eval_frame (libtorch_python.so)"
LOOKUP = "lookup (libtorch_python.so)"
TREE = "torch::dynamo::(anonymous namespace)::RootGuardManager::check_nopybind_template<FrameLocalsMapping> (libtorch_python.so)"
GOMP = "0x7 (libgomp.so.1)"
NEAREST = "at::native::(anonymous namespace)::upsample_nearest2d_kernel_impl (libtorch_cpu.so)"
CHOOSING = "at::native::DispatchStubImpl::get_call_ptr (libtorch_cpu.so)"
MALLOC = "malloc (libc.so.6)"
UNRESOLVED = "0x7f01 (libc.so.6)"
REPLAYING = "cudagraphify.<locals>.run (torch/_inductor/compile_fx.py:1875)"
FROZEN = "fw_compiler_freezing.<locals>.wrapper (torch/_inductor/compile_fx.py:2216)"
GENERATED = "kernel (cmvoqdq57mc3kthe65v5rx45m2vqzirfanvvgbpf5kffjpr3aqza.main.cpp:40)"
PACKAGED = "(ctj5tydpo2saleuln5hommaawna6ix57ypoghvfybrym7zfzjjwi.wrapper.so)"
WRAPPED = PACKAGED.replace("wrapper.so", "main.cpp:7")
MODEL = f"torch::aot_inductor::AOTInductorModel::run_impl {PACKAGED}"
NUMPY = "(numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so)"


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ((), "python/user"),
        ((USER,), "python/user"),
        ((USER, "_PyEval_EvalFrameDefault (libpython3.11.so.1.0)"), "python/user"),
        ((USER, "forward (torch/nn/modules/linear.py:125)"), "python/framework"),
        ((USER, "__enter__ (contextlib.py:137)"), "python/user"),
        ((USER, BINDING), "python/binding"),
        ((USER, BINDING, MALLOC), "python/binding"),
        ((USER, BINDING, ENTRY), "dispatcher/dispatch"),
        ((USER, BINDING, ENTRY, "c10::impl::OperatorEntry::lookup (libtorch_cpu.so)"), "dispatcher/dispatch"),
        ((USER, BINDING, ENTRY, "0x7f02 (libtorch_cpu.so)"), "dispatcher/dispatch"),
        ((USER, BINDING, ENTRY, "at::TensorIteratorBase::build (libtorch_cpu.so)"), "dispatcher/op_setup"),
        (
            (
                USER,
                BINDING,
                ENTRY,
                "torch::autograd::VariableType::(anonymous namespace)::add_Tensor (libtorch_cpu.so)",
            ),
            "dispatcher/autograd",
        ),
        ((USER, BINDING, ENTRY, MALLOC), "allocation/storage"),
        (
            (USER, BINDING, ENTRY, "mkl_blas_sgemm (libtorch_cpu.so)", "mkl_serv_free (libtorch_cpu.so)"),
            "allocation/storage",
        ),
        ((USER, BINDING, ENTRY, "mkl_serv_allocate (libtorch_cpu.so)", MALLOC), "allocation/storage"),
        ((USER, BINDING, ENTRY, "dnnl::impl::malloc (libtorch_cpu.so)"), "allocation/storage"),
        ((USER, BINDING, ENTRY, "nnp_convolution_inference (libtorch_cpu.so)"), "kernel"),
        ((USER, BINDING, ENTRY, "at::detail::empty_cpu (libtorch_cpu.so)"), "allocation/tensor"),
        (
            (USER, BINDING, ENTRY, "at::detail::empty_cpu (libtorch_cpu.so)", "c10::impl::X (libc10.so)"),
            "allocation/tensor",
        ),
        ((USER, BINDING, ENTRY, "at::detail::empty_cpu (libtorch_cpu.so)", MALLOC, UNRESOLVED), "allocation/tensor"),
        (
            (USER, BINDING, ENTRY, "at::detail::empty_cpu (libtorch_cpu.so)", "c10::alloc_cpu (libc10.so)", UNRESOLVED),
            "allocation/storage",
        ),
        ((USER, BINDING, "c10::TensorImpl::~TensorImpl (libc10.so)", "free (libc.so.6)"), "allocation/tensor"),
        ((USER, BINDING, ENTRY, "at::native::AVX2::copy_kernel (libtorch_cpu.so)"), "kernel"),
        *(
            ((USER, BINDING, ENTRY, f"at::native::{symbol} (libtorch_cpu.so)"), "kernel")
            for symbol in (
                "SVE128::fp16_gemv_trans",
                "(anonymous namespace)::avg_pool2d_kernel_impl",
                "(anonymous namespace)::GroupNormKernelImplInternal<float, float>",
                "(anonymous namespace)::cpu_max_pool<float, false>",
                "(anonymous namespace)::_bincount_cpu_template<long, float>",
                "(anonymous namespace)::searchsorted_cpu_contiguous<float, long>",
                "(anonymous namespace)::apply_triu_tril<float>(at::Tensor const&, bool)::{lambda(long, long)#1}::operator() const",
                (
                    "(anonymous namespace)::im2col_out_cpu_template(at::Tensor&)::{lambda()#1}::operator()() const::{lambda()#2}"
                    "::operator() const"
                ),
                (
                    "index_select_out_cpu_(at::Tensor&)::{lambda(long, long)#2}::operator()(long, long) const::{lambda()#1}"
                    "::operator() const"
                ),
                "unfolded2d_copy<float>(float*)::{lambda(long, long)#1}::operator() const",
                "templates::cpu::NormalFill16<float, true>::operator()",
                "structured_cat_out_cpu::impl",
                "randperm_out_cpu",
                "_exec_fft",
                "(anonymous namespace)::im2col<double>",
                "(anonymous namespace)::Dist<float>::run_backward_parallel_pdist<float>",
                "mul_out_sparse_cpu",
                "(anonymous namespace)::q_maxpool_2d<c10::quint8>",
                "(anonymous namespace)::q_avg_pool3d<c10::quint8, true>",
                "(anonymous namespace)::upsample_bilinear2d_out_frame<c10::quint8>",
                "(anonymous namespace)::HelperInterpBase::_compute_index_ranges_int16_weights<double (*)(double)>",
                "(anonymous namespace)::_adaptive_avg_pool<2, c10::quint8>",
                "vol2col<float>",
            )
        ),
        *(
            ((USER, BINDING, ENTRY, f"{returned} at::native::{symbol} (libtorch_cpu.so)"), "kernel")
            for returned, symbol in (
                ("void", "(anonymous namespace)::cpu_max_pool<float, false>"),
                ("at::Tensor", "(anonymous namespace)::ctc_loss_backward_cpu_template<float>"),
                ("std::tuple<at::Tensor, at::Tensor>", "_unique_cpu_template<long>"),
            )
        ),
        ((USER, BINDING, ENTRY, "at::TensorIteratorBase::serial_for_each (libtorch_cpu.so)"), "kernel"),
        ((USER, BINDING, ENTRY, "at::DimCounter::increment (libtorch_cpu.so)"), "kernel"),
        ((USER, BINDING, ENTRY, "at::TensorIteratorBase::for_each (libtorch_cpu.so)"), "dispatcher/op_setup"),
        *(
            ((USER, BINDING, ENTRY, f"at::native::{symbol} (libtorch_cpu.so)"), "dispatcher/op_setup")
            for symbol in (
                "linear",
                "max_pool2d",
                "structured_add_out::impl",
                "DispatchStub<void (*)(at::Tensor&), at::native::fill_stub>::operator()",
                "use_mkldnn_matmul",
                "median_out",
                "convolution_backward(at::Tensor&)::{lambda()#1}::operator() const",
            )
        ),
        *(
            (
                (USER, BINDING, ENTRY, *above, f"at::native::(anonymous namespace)::{symbol} (libtorch_cpu.so)"),
                expected,
            )
            for above, symbol, expected in (
                ((NEAREST,), "upsample_nearest_channels_last<float, nearest_idx>", "kernel"),
                ((NEAREST, GOMP), "ColumnwiseMoments<float>", "kernel"),
                ((), "upsample_nearest_channels_last<float, nearest_idx>", "dispatcher/op_setup"),
            )
        ),
        ((USER, BINDING, ENTRY, NEAREST, CHOOSING), "dispatcher/op_setup"),
        *(
            ((USER, BINDING, ENTRY, NEAREST, f"at::native::{symbol} (libtorch_cpu.so)"), "dispatcher/op_setup")
            for symbol in (
                "use_mkldnn_bf32_matmul",
                "resize_output(at::Tensor const&)",
                "resize_impl_cpu_",
            )
        ),
        ((USER, "0x7 (libtorch_cpu.so)"), "kernel"),
        ((USER, BINDING, "0x7 (libtorch_cpu.so)"), "python/binding"),
        (
            (EVAL_FRAME, "at::RecordFunction::before (libtorch_cpu.so)", "0x7 (libtorch_cpu.so)"),
            "python/compiled_runtime",
        ),
        *(
            ((USER, BINDING, ENTRY, *frames), "allocation/storage")
            for frames in (
                ("tc_newarray (libtcmalloc_minimal.so.4.5.10)",),
                ("tc_delete (libtcmalloc.so.4)", "tcmalloc::PageHeap::Delete (libtcmalloc.so.4)"),
                ("mi_new (libmimalloc.so.2.0)", "0x7 (libmimalloc.so.2.0)"),
                ("scalable_malloc (libtbbmalloc.so.2)",),
            )
        ),
        ((USER, BINDING, "tc_newarray (libtcmalloc.so.4)"), "python/binding"),
        *(
            ((USER, "CachingAutotuner.run (torch/_inductor/runtime/triton_heuristics.py:7)", *frames), "launch")
            for frames in (
                ("launch (__triton_launcher.cpython-311-x86_64-linux-gnu.so)", "vgetargs1_impl (libpython3.11.so.1.0)"),
                ("launch (__triton_launcher.so)", "cuLaunchKernel (libcuda.so.1)"),
                ("launchKernel (cuda_utils.cpython-312-x86_64-linux-gnu.so)", "extractPointer (cuda_utils.so)"),
                ("launchKernel (hip_utils.so)",),
                ("(anonymous namespace)::launch_kernel (libtorch_python.so)",),
            )
        ),
        ((USER, "nanobind::detail::nb_func_vectorcall_simple_0 (mine.so)"), "python/binding"),
        ((USER, BINDING, ENTRY, "at::TensorIteratorBase::for_each (libtorch_cpu.so)", GOMP), "wait/parallel"),
        ((USER, BINDING, ENTRY, "omp_get_max_threads (libgomp.so.1)"), "dispatcher/dispatch"),
        ((USER, "mkl_vml_kernel_sErf_EXHAynn (libtorch_cpu.so)"), "kernel"),
        *(
            ((USER, BINDING, ENTRY, f"{symbol} (libtorch_{device}.so)"), "dispatcher/dispatch")
            for device in ("cuda", "hip", "xpu")
            for symbol in ("at::(anonymous namespace)::wrapper_CUDA_add_Tensor", "at::cuda::getCurrentDevice", "0x7f02")
        ),
        ((USER, BINDING, ENTRY, "at::(anonymous namespace)::wrapper (libtorch_hip.so)", MALLOC), "allocation/storage"),
        *(
            ((USER, BINDING, ENTRY, f"c10::{symbol}::raw_alloc (libc10_{device}.so)"), "allocation/storage")
            for device, symbol in (
                ("cuda", "cuda::CUDACachingAllocator"),
                ("hip", "hip::HIPCachingAllocator"),
                ("xpu", "xpu::XPUCachingAllocator"),
            )
        ),
        ((USER, "pybind11::cpp_function::dispatcher (mine.so)"), "python/binding"),
        ((USER, "_random_Random_getstate (_randommodule.c:380)", MALLOC), "python/extension"),
        ((USER, "work (mymodule.cpp:3)"), "python/extension"),
        ((USER, "pybind11::cpp_function::dispatcher (mine.so)", "mine::work (mine.so)"), "python/extension"),
        (
            (USER, BINDING, ENTRY, "c10::impl::make_boxed_from_unboxed_functor<mine::Op>::call (mine.so)"),
            "dispatcher/dispatch",
        ),
        ((EVAL_FRAME,), "python/compiled_runtime"),
        ((EVAL_FRAME, "get_backend (libtorch_python.so)", "unicode_hash (libpython3.11.so.1.0)"), "guard"),
        ((EVAL_FRAME, LOOKUP, TREE), "guard"),
        (
            (EVAL_FRAME, LOOKUP, TREE, "GuardBuilder.fn (torch/_dynamo/guards.py:10)", "helper (mine.py:3)", BINDING),
            "guard",
        ),
        (("compile_wrapper (torch/_dynamo/eval_frame.py:1166)",), "python/compiled_runtime"),
        (("Runner.call (csovpu7gtn2rljnkz3iohnunu5vaxyclbxiacphea63ffij56fxo.py:78)",), "python/compiled_runtime"),
        (
            ("_runtime_wrapper (torch/_functorch/_aot_autograd/subclass_codegen.py:codegen(x):3)",),
            "python/compiled_runtime",
        ),
        ((GENERATED.replace("kernel ", "kernel_py "),), "python/binding"),
        (
            (GENERATED, "at::vec::Vectorized<float>::store (vec512_float.h:9)", "_mm512_storeu_ps (avx512fintrin.h:8)"),
            "kernel",
        ),
        *(
            ((EVAL_FRAME, GENERATED, *frames), expected)
            for frames, expected in (
                (("GOMP_parallel (libgomp.so.1)", GOMP), "wait/parallel"),
                (("GOMP_parallel (libgomp.so.1)", GENERATED.replace("kernel ", "kernel._omp_fn.0 ")), "kernel"),
                (("dnnl::impl::cpu::x64::brgemm_kernel_execute (libtorch_cpu.so)",), "kernel"),
                ((MALLOC,), "allocation/storage"),
            )
        ),
        *(
            ((EVAL_FRAME, f"cpp_fused_add_0 {PACKAGED}", *frames), expected)
            for frames, expected in (
                ((GOMP,), "wait/parallel"),
                ((GOMP, f".omp_outlined. {PACKAGED}"), "kernel"),
                ((f"welford_combine<float> {PACKAGED}",), "kernel"),
            )
        ),
        *(
            ((USER, BINDING, f"AOTINoGradGuard::~AOTINoGradGuard {PACKAGED}", MODEL, *frames), expected)
            for frames, expected in (
                ((), "python/compiled_runtime"),
                ((f"cpp_fused_add_0 {PACKAGED}",), "kernel"),
                ((f"cpp_fused_add_0 {PACKAGED.replace('wrapper.so', 'kernel.cpp:7')}",), "kernel"),
                (
                    ("aoti_torch_empty_strided (libtorch_cpu.so)", "at::detail::empty_cpu (libtorch_cpu.so)"),
                    "allocation/tensor",
                ),
                (
                    (f"torch::aot_inductor::RAIIAtenTensorHandle::~RAIIAtenTensorHandle {PACKAGED}",),
                    "python/compiled_runtime",
                ),
                (("aoti_torch_cpu_addmm_out (libtorch_cpu.so)", ENTRY), "dispatcher/dispatch"),
                ((f"call_triton_poi_fused_0 {PACKAGED}",), "python/compiled_runtime"),
                ((f"launchKernel {PACKAGED}", "cuLaunchKernel (libcuda.so.1)"), "launch"),
            )
        ),
        ((BINDING, f"inductor_entry_cpp {WRAPPED}"), "python/binding"),
        ((BINDING, f"inductor_entry_cpp {WRAPPED}", f"inductor_entry_impl {WRAPPED}"), "python/compiled_runtime"),
        (("transform (torch/_dynamo/convert_frame.py:7)", "anything (torch/fx/graph.py:1)"), "compile"),
        ((REPLAYING, "CUDAGraphNode.run (torch/_inductor/cudagraph_trees.py:7)"), "python/compiled_runtime"),
        ((REPLAYING, "Config.__getattr__ (torch/utils/_config_module.py:7)"), "python/framework"),
        ((REPLAYING, "cudaGraphLaunch (libcudart.so.13)"), "launch"),
        ((FROZEN, "CompiledFxGraph.__call__ (torch/_inductor/output_code.py:7)"), "python/compiled_runtime"),
        (
            (FROZEN, "CompiledFxGraph.__call__ (torch/_inductor/output_code.py:7)", "mkl_blas_sgemm (libtorch_cpu.so)"),
            "kernel",
        ),
        (("cudagraphify (torch/_inductor/compile_fx.py:7)", "anything (torch/fx/graph.py:1)"), "compile"),
        ((USER, "0x7f02 (libcudnn_graph.so.9)", "nvrtcCompileProgram (libnvrtc.so.13)", MALLOC), "compile"),
        ((USER, "compile (site-packages/triton/compiler/compiler.py:226)", "ir::module (libtriton.so)"), "compile"),
        (
            (USER, "compile (triton/compiler/compiler.py:226)", "check_call (subprocess.py:1)", "poll (libc.so.6)"),
            "compile",
        ),
        ((USER, "CompiledKernel.launch_metadata (triton/compiler/compiler.py:400)"), "python/framework"),
        ((USER, f"DOUBLE_sqrt {NUMPY}"), "kernel"),
        ((USER, f"DOUBLE_exp_X86_V4 {NUMPY}", f"__svml_exp8_ha {NUMPY}"), "kernel"),
        ((USER, f"raw_array_assign_array {NUMPY}", f"_contig_to_contig {NUMPY}", "0x7fa3 (libc.so.6)"), "kernel"),
        (
            (USER, f"quicksort_float {NUMPY}", f"sort_n_vec<zmm_vector<float>, 32, float __vector(16)> {NUMPY}"),
            "kernel",
        ),
        ((USER, f"PyArray_LexSort {NUMPY}", f"atimsort_<npy::long_tag> {NUMPY}"), "kernel"),
        ((USER, f"array__unique_hash {NUMPY}", f"unique_numeric<long> {NUMPY}", f"npy_fnv1a {NUMPY}"), "kernel"),
        ((USER, f"PyArray_EinsteinSum {NUMPY}", f"double_sum_of_products_contig_two {NUMPY}"), "kernel"),
        ((USER, f"array_where {NUMPY}", f"PyArray_Where {NUMPY}"), "kernel"),
        ((USER, f"array_subscript {NUMPY}", f"mapiter_trivial_get {NUMPY}", f"a_helper {NUMPY}"), "kernel"),
        ((USER, f"PyArray_TakeFrom {NUMPY}", f"PyArray_NewFromDescr_int {NUMPY}"), "allocation/tensor"),
        ((USER, f"PyArray_TakeFrom {NUMPY}", f"PyArray_FromAny_int {NUMPY}"), "dispatcher/op_setup"),
        ((USER, f"array_tolist {NUMPY}", f"PyArray_ToList {NUMPY}"), "python/binding"),
        ((USER, f"array_tolist {NUMPY}", f"PyArray_ToList {NUMPY}", f"DOUBLE_getitem {NUMPY}"), "python/binding"),
        (
            (USER, f"array_array {NUMPY}", f"PyArray_AssignFromCache_Recursive {NUMPY}", f"LONG_setitem {NUMPY}"),
            "python/binding",
        ),
        (
            (
                USER,
                "standard_normal (numpy/random/_generator.so)",
                "random_standard_normal (numpy/random/_generator.so)",
            ),
            "kernel",
        ),
        ((USER, "standard_normal (numpy/random/_generator.so)"), "python/binding"),
        ((USER, "pocketfft::detail::cfftp<double>::pass_all<true> (numpy/fft/_pocketfft_umath.so)"), "kernel"),
        ((USER, "inv<double> (numpy/linalg/_umath_linalg.so)", "dgetrf_ (libscipy_openblas64_-ff651d7f.so)"), "kernel"),
        *(
            ((USER, f"execute_ufunc_loop {NUMPY}", f"{symbol} {NUMPY}", *below), "kernel")
            for symbol, *below in (
                ("DATETIME_MM_m_subtract",),
                ("TIMEDELTA_mm_m_add",),
                ("CLONGDOUBLE_add",),
                ("PyUFunc_dd_d", f"npy_hypot {NUMPY}", "hypot (libm.so.6)"),
                ("PyUFunc_ff_f_As_dd_d",),
                ("PyUFunc_D_D",),
                ("int string_add_loop<(ENCODING)1>",),
                ("string_comparison_strided_loop",),
                ("_cast_double_to_float",),
            )
        ),
        *(
            ((USER, f"{symbol} {NUMPY}"), "dispatcher/op_setup")
            for symbol in ("PyUFunc_ReduceWrapper", "PyUFunc_OO_O", "PyUFunc_DefaultTypeResolver")
        ),
        ((USER, f"string_to_string_get_loop {NUMPY}"), "python/binding"),
        ((USER, f"ufunc_generic_fastcall {NUMPY}"), "dispatcher/op_setup"),
        (
            (USER, f"float_add {NUMPY}", f"npy_get_floatstatus_barrier {NUMPY}", "fetestexcept (libm.so.6)"),
            "python/binding",
        ),
        ((USER, f"array_dealloc {NUMPY}", "free (libc.so.6)"), "allocation/tensor"),
        ((USER, "0x7f04 (?)"), "kernel"),
        ((USER, "Dispatcher::resolve (_dispatcher.cpp:300)"), "dispatcher/dispatch"),
        ((USER, "secret_work (somebody_elses.so)"), "python/extension"),
        ((USER, "secret_work (somebody_elses.so)", UNRESOLVED), "python/extension"),
        ((USER, BINDING, ENTRY, "secret_work (somebody_elses.so)"), "unattributed"),
        ((USER, BINDING, ENTRY, "secret_work (somebody_elses.so)", USER), "python/user"),
        ((USER, "secret_work"), "unattributed"),
        ((USER, "cudaStreamSynchronize (libcudart.so.12)", "cuStreamSynchronize (libcuda.so.1)"), "wait/device"),
        ((USER, "cudaLaunchKernel (libcudart.so.12)"), "launch"),
        ((USER, BINDING, ENTRY, "hipMemcpyAsync (libamdhip64.so.6)"), "launch"),
        ((USER, BINDING, ENTRY, "cudaMemcpyAsync (libcudart.so.12)"), "launch"),
        *(
            ((USER, BINDING, ENTRY, *frames), "wait/device")
            for frames in (
                ("hipMemcpyWithStream (libamdhip64.so.6)", "0x7 (libhsa-runtime64.so.1)"),
                ("hipEventSynchronize (libamdhip64.so.6)",),
                ("cudaMemcpy (libcudart.so.12)", "0x7 (libcuda.so.1)"),
                ("cuMemcpyDtoH_v2 (libcuda.so.1)",),
                ("cuEventSynchronize (libcuda.so.1)",),
                ("c10::hip::device_synchronize (libc10_hip.so)", "poll (libc.so.6)"),
            )
        ),
        *(
            ((USER, BINDING, ENTRY, *frames), "allocation/storage")
            for frames in (
                ("cudaMalloc (libcudart.so.12)", "0x7 (libcuda.so.1)"),
                ("cudaHostAlloc (libcudart.so.12)", "0x7 (libcuda.so.1)"),
                ("hipHostMalloc (libamdhip64.so.6)", "0x7 (libhsa-runtime64.so.1)"),
                ("cuMemCreate (libcuda.so.1)", UNRESOLVED),
            )
        ),
        ((USER, "pysleep (libpython3.11.so.1.0)", "clock_nanosleep (libc.so.6)"), "wait/io"),
        ((USER, BINDING, "take_gil (libpython3.11.so.1.0)", "pthread_cond_timedwait (libc.so.6)"), "wait/gil"),
        ((USER, BINDING, ENTRY, GOMP, "pthread_cond_wait (libc.so.6)"), "wait/parallel"),
        ((USER, BINDING, ENTRY, GOMP, "syscall (libc.so.6)", UNRESOLVED), "wait/parallel"),
        ((USER, BINDING, ENTRY, GOMP, "0x7 (libtorch_cpu.so)"), "kernel"),
        ((USER, BINDING, ENTRY, GOMP, "at::internal::invoke_parallel<f> (libtorch_cpu.so)"), "kernel"),
        ((USER, BINDING, ENTRY, GOMP, "body (mine.so)"), "kernel/extension"),
        ((USER, "work (mine.so)", GOMP), "wait/parallel"),
        ((USER, "work (mine.so)", GOMP, "body (mine.so)"), "python/extension"),
        ((USER, "work (mine.so)", GOMP, "body (mine.so)", GOMP), "wait/parallel"),
        *(
            ((USER, BINDING, ENTRY, frame), "wait/parallel")
            for frame in (
                "0x7 (libgomp-a34b3233.so.1)",
                "__kmp_fork_barrier (libiomp5.so)",
                "__kmpc_fork_call (libomp.so.5)",
                "tbb::detail::r1::execute (libtbb.so.12)",
                "pthreadpool_parallelize_1d_tile_1d (libtorch_cpu.so)",
            )
        ),
        *(
            ((USER, BINDING, *frames), "wait/collective")
            for frames in (
                ("c10d::Work::wait (libtorch_cpu.so)", "pthread_cond_wait (libc.so.6)"),
                ("c10d::ProcessGroupGloo::AsyncWork::wait (libtorch_cpu.so)", "pthread_cond_timedwait (libc.so.6)"),
                ("c10d::TCPStore::wait (libtorch_cpu.so)", "poll (libc.so.6)"),
                ("gloo::transport::tcp::Pair::write (libtorch_cpu.so)", "writev (libc.so.6)"),
                (ENTRY, "ncclAllReduce (libtorch_cuda.so)"),
                (ENTRY, "0x7 (libnccl.so.2)", "poll (libc.so.6)"),
                ("PMPI_Allreduce (libmpi.so.40)", "ucp_worker_progress (libucp.so.0)", UNRESOLVED),
                ("PMPI_Allreduce (libmpich.so.12)", "MPIDI_CH3I_Progress (libmpich.so.12)"),
                ("c10d::ProcessGroupXCCL::allreduce (libtorch_xpu.so)", "ccl::allreduce (libccl.so.1)"),
            )
        ),
        ((USER, BINDING, "c10d::Reducer::mark_variable_ready (libtorch_cpu.so)"), "python/binding"),
        ((USER, BINDING, "c10d::ProcessGroupGloo::send (libtorch_cpu.so)", ENTRY), "dispatcher/dispatch"),
        (
            (USER, BINDING, "c10d::Work::wait (libtorch_cpu.so)", "cudaStreamSynchronize (libcudart.so.12)"),
            "wait/device",
        ),
    ],
)
def test_claims(frames: tuple[str, ...], expected: str) -> None:
    assert attribution(*frames) == expected


HF = "forward (site-packages/transformers/models/gpt2.py:7)"
JSON = "raw_decode (lib/python3.11/json/decoder.py:353)"
IMPORT = "_find_and_load (<frozen importlib._bootstrap>:1176)"
COLLECT = "gc_collect_main (libpython3.11.so.1.0)"
RUNNER = "c10::impl::detail::WrapFunctionIntoRuntimeFunctor_<at::Tensor (*)(at::Tensor const&)>::operator() (mine.so)"
LOADER = "_MultiProcessingDataLoaderIter._try_get_data (site-packages/torch/utils/data/dataloader.py:1291)"
GIL_HELD = "GIL held by thread logger"
POOL = "duckdb::Executor::WaitForTask (_duckdb.cpython-311-x86_64-linux-gnu.so)"
ENGINE = "torch::autograd::Engine::thread_main (libtorch_cpu.so)"
BLOCKED = ("std::condition_variable::wait (libstdc++.so.6.0.30)", "pthread_cond_wait (libc.so.6)", UNRESOLVED)


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ((HF,), "python/library"),
        (("forward (transformers/models/gpt2.py:7)",), "python/library"),
        (("f (site-packages/six.py:7)",), "python/library"),
        (("forward (site-packages/timm/layers/torch/x.py:7)",), "python/library"),
        (("forward (site-packages/torch/nn/modules/linear.py:125)",), "python/framework"),
        (("forward (site-packages/triton/runtime/jit.py:125)",), "python/framework"),
        (("vmap (site-packages/torch/_functorch/apis.py:208)",), "python/framework"),
        (("_flat_vmap (site-packages/torch/_functorch/vmap.py:484)",), "python/framework"),
        (
            ("runtime_wrapper (site-packages/torch/_functorch/_aot_autograd/runtime_wrappers.py:300)",),
            "python/compiled_runtime",
        ),
        (("compile_wrapper (site-packages/torch/_dynamo/eval_frame.py:1166)",), "python/compiled_runtime"),
        (("forward (model/mytorch/x.py:7)",), "python/user"),
        (("measured_loop (site-packages/overhead_lens/worker/loop.py:4)",), "python/user"),
        (("add1 (site-packages/overhead_lens/scenarios/add1.py:4)",), "python/user"),
        ((JSON,), "python/user"),
        ((HF, JSON), "python/library"),
        ((HF, USER), "python/user"),
        ((IMPORT, "<module> (site-packages/torch/_dynamo/convert_frame.py:7)"), "python/import"),
        ((IMPORT, "<module> (train.py:7)", BINDING, ENTRY), "python/import"),
        ((IMPORT, "open (libpython3.11.so.1.0)", "read (libc.so.6)"), "python/import"),
        (("transform (torch/_dynamo/convert_frame.py:7)", IMPORT), "compile"),
        ((COLLECT, "c10::TensorImpl::~TensorImpl (libc10.so)"), "python/gc"),
        ((COLLECT, "__del__ (train.py:7)"), "python/gc"),
        ((IMPORT, COLLECT), "python/gc"),
        ((USER, "ffi_call (libffi.so.8.1.2)", "call (libmine.so)"), "python/extension"),
        ((USER, "PyCFuncPtr_call (_ctypes.c:4201)"), "python/binding"),
        ((USER, "encode (tokenizers/tokenizers.abi3.so)"), "python/extension"),
        ((USER, "run (fast.cpython-311-x86_64-linux-gnu.so)"), "python/extension"),
        ((USER, "pybind11::detail::argument_loader<long>::call<double> && (mine.so)"), "python/binding"),
        ((USER, BINDING, ENTRY, RUNNER), "dispatcher/dispatch"),
        ((USER, BINDING, ENTRY, RUNNER, "mine::work (mine.so)"), "kernel/extension"),
        ((USER, BINDING, ENTRY, RUNNER, "mine::work (mine.cpp:7)"), "kernel/extension"),
        ((USER, BINDING, ENTRY, RUNNER, "0x7f02 (mine.so)", UNRESOLVED), "kernel/extension"),
        ((USER, BINDING, ENTRY, RUNNER, "mine::work (mine.so)", MALLOC), "allocation/storage"),
        ((USER, BINDING, ENTRY, RUNNER, "mine::work (mine.so)", ENTRY), "dispatcher/dispatch"),
        ((USER, BINDING, ENTRY, RUNNER, "mine::work (mine.so)", ENTRY, "work (other.so)"), "unattributed"),
        ((USER, BINDING, ENTRY, "at::native::AVX2::f (libtorch_cpu.so)", "svml (libsvml.so)"), "kernel/extension"),
        ((LOADER, "Queue.get (lib/python3.11/multiprocessing/queues.py:113)", "poll (libc.so.6)"), "wait/data"),
        ((LOADER, "PyThread_acquire_lock_timed (libpython3.11.so.1.0)", *BLOCKED), "wait/data"),
        ((LOADER, "_pickle_loads (_pickle.c.h:834)", "load (_pickle.c:6978)"), "wait/data"),
        (
            (USER, BINDING, "PyEval_RestoreThread (libpython3.11.so.1.0)", "pthread_cond_timedwait (libc.so.6)"),
            "wait/gil",
        ),
        ((USER, "PyThread_acquire_lock_timed (libpython3.11.so.1.0)", "sem_clockwait (libc.so.6)"), "wait/lock"),
        (
            (USER, "PyThread_acquire_lock_timed (libpython3.11.so.1.0)", "pthread_cond_timedwait (libc.so.6)"),
            "wait/gil",
        ),
        ((USER, POOL, "pthread_cond_timedwait (libc.so.6)"), "wait/lock"),
        ((USER, POOL, "PyEval_RestoreThread (libpython3.11.so.1.0)", "pthread_cond_timedwait (libc.so.6)"), "wait/gil"),
        ((USER, POOL, "PyGILState_Ensure (python3.11)", "take_gil (python3.11)", UNRESOLVED), "wait/gil"),
        ((USER, POOL, "PyGILState_Ensure (python3.11)", UNRESOLVED), "python/binding"),
        (
            (USER, "sock_recv (socketmodule.c:3567)", "take_gil (ceval_gil.c:9)", "pthread_cond_timedwait (libc.so.6)"),
            "wait/gil",
        ),
        ((USER, "drop_gil (libpython3.11.so.1.0)", "pthread_cond_wait (libc.so.6)"), "wait/gil"),
        ((USER, "pthread_cond_wait (libc.so.6)", UNRESOLVED), "wait/gil"),
        ((USER, BINDING, "pthread_cond_wait (libc.so.6)", UNRESOLVED), "wait/lock"),
        ((USER, "_PySemaphore_Wait (python3.14)", UNRESOLVED), "wait/lock"),
        ((USER, "_thread_lock_acquire_impl (libpython3.14.so.1.0)", UNRESOLVED), "wait/lock"),
        ((USER, UNRESOLVED, "futex (libc.so.6)"), "wait/lock"),
        ((USER, UNRESOLVED, UNRESOLVED), "python/user"),
        ((USER, "std::sys::pal::unix::futex::futex_wait (polars.abi3.so)", "syscall (libc.so.6)"), "wait/lock"),
        (
            (
                USER,
                BINDING,
                ENGINE,
                "std::__atomic_futex_unsigned_base::_M_futex_wait_until (libstdc++.so.6)",
                "syscall (libc.so.6)",
            ),
            "wait/lock",
        ),
        ((USER, "_queue_SimpleQueue_get_impl (_queuemodule.c:418)", UNRESOLVED), "wait/lock"),
        ((USER, "_queue_SimpleQueue_put_impl (_queuemodule.c:310)", UNRESOLVED), "python/extension"),
        ((USER, "_multiprocessing_SemLock_acquire_impl (semaphore.c:341)", UNRESOLVED), "wait/lock"),
        ((USER, "Thread.join (lib/python3.13/threading.py:1092)", UNRESOLVED), "wait/lock"),
        ((USER, "join (mine/threading.py:3)", UNRESOLVED), "python/user"),
        ((USER, GIL_HELD), "wait/gil"),
        ((USER, BINDING, ENTRY, GIL_HELD), "wait/gil"),
        (
            (USER, "PyThread_acquire_lock_timed (libpython3.11.so.1.0)", "sem_clockwait (libc.so.6)", GIL_HELD),
            "wait/gil",
        ),
        ((LOADER, GIL_HELD), "wait/gil"),
        ((USER, BINDING, "c10::ivalue::Future::wait (libtorch_cpu.so)", *BLOCKED), "wait/lock"),
        ((USER, BINDING, "pthread_cond_clockwait (libc.so.6)"), "wait/lock"),
        ((USER, BINDING, ENGINE, *BLOCKED), "wait/lock"),
        ((USER, BINDING, ENGINE, "torch::autograd::ReadyQueue::pop (libtorch_cpu.so)", *BLOCKED), "wait/lock"),
        ((USER, BINDING, ENGINE, "torch::autograd::ReadyQueue::pop (libtorch_cpu.so)"), "dispatcher/autograd"),
        ((USER, BINDING, ENGINE, "torch::autograd::Node::operator() (libtorch_cpu.so)", *BLOCKED), "wait/lock"),
        ((USER, BINDING, ENTRY, "work (libpool.so)", "poll (libc.so.6)"), "wait/io"),
    ],
)
def test_other_peoples_code_and_waiting(frames: tuple[str, ...], expected: str) -> None:
    assert attribution(*frames) == expected


@pytest.mark.parametrize(
    ("folded", "expected"),
    [
        (("thread (7): pt_autograd_0", "0x7f01 (libc.so.6)", ENGINE, *BLOCKED), "wait/lock"),
        (("thread (7): pool", "clone (libc.so.6)", "work (libpool.so)", "pthread_cond_wait (libc.so.6)"), "wait/lock"),
        (("thread (7): Thread-1 (f)", "0x7f01 (libc.so.6)", "poll (libc.so.6)"), "wait/io"),
        (("thread (7): pool", "clone (libc.so.6)", "work (libpool.so)"), "unattributed"),
        (
            ("thread (7): Thread-1 (f)", "thread_run (libpython3.11.so.1.0)", "run (lib/python3.11/threading.py:982)"),
            "python/user",
        ),
    ],
)
def test_a_threads_own_stack(folded: tuple[str, ...], expected: str) -> None:
    (found,) = parse_stacks([f"{';'.join(folded)} 1"])
    assert claimed(found) == expected


COPY = (USER, BINDING, ENTRY, "at::native::copy_impl (libtorch_cpu.so)")
LOGSPACE = (USER, BINDING, ENTRY, "at::native::logspace_out (libtorch_cpu.so)")
ITERATOR = "at::TensorIteratorBase::build (libtorch_cpu.so)"


@pytest.mark.parametrize(
    ("own", "in_libc", "others", "category"),
    [(51, 0, 49, "kernel"), (10, 41, 49, "kernel"), (50, 0, 50, "dispatcher"), (0, 0, 1, "dispatcher")],
)
def test_a_copy_is_a_kernel_where_it_takes_most_of_its_time_itself(
    own: int, in_libc: int, others: int, category: str
) -> None:
    sides = [stack(*COPY, count=own), stack(*COPY, UNRESOLVED, count=in_libc), stack(*COPY, ITERATOR, count=others)]
    fitted = CLASSIFIER.fitted([*sides, stack(USER, count=1_000)])
    assert [fitted.classify(each).attribution.category for each in sides] == [category, category, "dispatcher"]


def test_each_function_is_looked_at_by_itself() -> None:
    sides = [stack(*LOGSPACE, count=900), stack(*COPY, count=1), stack(*COPY, ITERATOR, count=2)]
    fitted = CLASSIFIER.fitted(sides)
    assert [fitted.classify(each).attribution.category for each in sides] == ["kernel", "dispatcher", "dispatcher"]
    assert [CLASSIFIER.classify(each).attribution.category for each in sides] == ["dispatcher"] * 3


@pytest.mark.parametrize(
    ("symbol", "works"),
    [
        ("structured_max_pool2d_with_indices_out_cpu::impl", True),
        ("(anonymous namespace)::max_pool1d_impl", True),
        ("nll_loss2d_forward_out_cpu", True),
        ("_coalesce_sparse_cpu(at::Tensor const&)::{lambda()#1}::operator() const", True),
        ("structured_gt_Scalar_out::impl", False),
        ("as_strided_tensorimpl", False),
        ("select_symint", False),
        ("resize_impl_cpu_", False),
        ("DispatchStubImpl::try_choose_cpu_impl", False),
    ],
)
def test_who_may_do_the_work_itself(symbol: str, works: bool) -> None:  # noqa: FBT001
    alone = stack(USER, BINDING, ENTRY, f"at::native::{symbol} (libtorch_cpu.so)")
    assert CLASSIFIER.may_work(alone.frames[-1]) == works
    fitted = CLASSIFIER.fitted([alone])
    assert fitted.classify(alone).attribution.category == ("kernel" if works else "dispatcher")


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("void at::native::f<int>", "at::native::f<int>"),
        (
            "std::tuple<at::Tensor, long> at::(anonymous namespace)::g<a b>(int)",
            "at::(anonymous namespace)::g<a b>(int)",
        ),
        ("unsigned long f<a->b>", "f<a->b>"),
        ("void c10::function_ref<void (char**, long)>::call<x>", "c10::function_ref<void (char**, long)>::call<x>"),
        ("at::f(at::Tensor const&)::{lambda()#1}::operator()() const::{lambda()#2}", None),
        ("operator new(unsigned long)", None),
        ("c10::Scalar::operator bool", None),
        ("std::unique_ptr<void, void (*)(void*)>::~unique_ptr", None),
        ("decltype(auto) f<int>", None),
        ("", None),
    ],
)
def test_a_return_type_is_no_part_of_a_name(symbol: str, name: str | None) -> None:
    assert without_return_type(symbol) == (symbol if name is None else name)


@pytest.mark.parametrize(
    ("frames", "shown"),
    [
        ((USER, UNRESOLVED), "add1 (add1.py)"),
        (
            (USER, BINDING, ENTRY, "c10::alloc_cpu (libc10.so)", "posix_memalign (libc.so.6)", UNRESOLVED),
            "posix_memalign (libc.so.6)",
        ),
        ((EVAL_FRAME, LOOKUP, TREE, "fn (torch/_dynamo/guards.py:10)"), "fn (torch/_dynamo/guards.py)"),
        ((), LOOP.replace(":4", "")),
        ((HF, JSON), "raw_decode (lib/python3.11/json/decoder.py)"),
        ((USER, "time_sleep (libpython3.11.so.1.0)", "clock_nanosleep (libc.so.6)"), "add1 (add1.py)"),
        ((USER, BINDING, ENGINE, *BLOCKED), ENGINE),
        ((USER, BINDING, ENTRY, RUNNER, "mine::work (mine.so)", UNRESOLVED), "mine::work (mine.so)"),
    ],
)
def test_shown_frame_is_the_innermost_that_says_something(frames: tuple[str, ...], shown: str) -> None:
    assert str(CLASSIFIER.classify(stack(*frames)).frame) == shown


CALLBACK = (
    "c10::function_ref<void (char**, long const*, long, long)>::callback_fn<at::native::AVX2::VectorizedLoop2d<f>>"
    " (libtorch_cpu.so)"
)
BERNOULLI = "at::_ops::bernoulli__float::call (libtorch_cpu.so)"


@pytest.mark.parametrize(
    ("frames", "shown"),
    [
        ((BERNOULLI, CALLBACK), "aten::bernoulli_ (libtorch_cpu.so)"),
        ((BERNOULLI, CALLBACK, UNRESOLVED), "aten::bernoulli_ (libtorch_cpu.so)"),
        (
            (ENTRY, BERNOULLI, "void at::internal::invoke_parallel<f>(long) [clone ._omp_fn.0] (libtorch_cpu.so)"),
            "aten::bernoulli_ (libtorch_cpu.so)",
        ),
        ((BERNOULLI, ENTRY.replace("call", "redispatch"), CALLBACK), "aten::add (libtorch_cpu.so)"),
        (
            (BERNOULLI, "at::native::AVX2::VectorizedLoop2d<f>::operator() (libtorch_cpu.so)"),
            "aten::bernoulli_ (libtorch_cpu.so)",
        ),
        ((BERNOULLI, CALLBACK, "mkl_blas_avx512_xsgemm (libtorch_cpu.so)"), "mkl_blas_avx512_xsgemm (libtorch_cpu.so)"),
        (
            (BERNOULLI, "at::native::AVX2::exp_kernel (libtorch_cpu.so)"),
            "at::native::AVX2::exp_kernel (libtorch_cpu.so)",
        ),
        ((CALLBACK,), "c10::function_ref<...>::callback_fn<...> (libtorch_cpu.so)"),
        ((ENTRY, GOMP), "OpenMP runtime (libgomp)"),
        ((ENTRY, "GOMP_parallel (libgomp.so.1)"), "GOMP_parallel (libgomp.so.1)"),
        ((ENTRY, "0x7 (libgomp-a34b3233.so.1)"), "OpenMP runtime (libgomp)"),
        ((ENTRY, "0x7 (libiomp5.so)"), "OpenMP runtime (libiomp5)"),
        ((ENTRY, "0x7 (libomp.so.5)"), "OpenMP runtime (libomp)"),
        ((ENTRY, "0x7 (libtbb.so.12)"), "TBB runtime (libtbb)"),
        ((ENTRY, GIL_HELD), GIL_HELD),
        ((BERNOULLI, "dnnl_primitive_execute (libtorch_cpu.so)", "0x7f (?)"), "aten::bernoulli_ (generated code)"),
        ((BERNOULLI, "0x7 (libmkl_avx2.so.2)"), "aten::bernoulli_ (libmkl_avx2.so.2)"),
        (("0x7f (?)",), "[unresolved] (generated code)"),
    ],
)
def test_displayed_names(frames: tuple[str, ...], shown: str) -> None:
    assert display_name(CLASSIFIER.classify(stack(USER, BINDING, *frames)).frame) == shown


@pytest.mark.parametrize("thread", ["logger", "Thread-1 (<lambda>)", "pool; of (mine)"])
def test_whoever_holds_the_gil_is_named(thread: str) -> None:
    waiting = stack(USER, BINDING)
    held = Stack((*waiting.frames, gil_held_by(thread)), 1)
    assert claimed(held) == "wait/gil"
    assert display_name(CLASSIFIER.classify(held).frame) == str(held.frames[-1]) == f"GIL held by thread {thread}"


@pytest.mark.parametrize(
    ("entry", "operator"),
    [
        ("bernoulli__float", "bernoulli_"),
        ("add__Tensor", "add_"),
        ("add_Tensor", "add"),
        ("add_out", "add"),
        ("__and___Tensor", "__and__"),
        ("_softmax", "_softmax"),
        ("_cast_Half", "_cast_Half"),
        ("to_sparse_csr", "to_sparse_csr"),
        ("addcdiv_", "addcdiv_"),
    ],
)
def test_operators_of_entries(entry: str, operator: str) -> None:
    assert operator_of_entry(entry) == f"aten::{operator}"


@pytest.mark.parametrize(
    ("name", "category", "expected"),
    [
        ("TorchDynamo Cache Lookup", "cpu_op", "guard"),
        ("aten::empty_strided", "cpu_op", "allocation"),
        ("aten::add", "cpu_op", "dispatcher"),
        ("CheckpointFunction", "cpu_op", "python"),
        ("_NoopSaveInputsBackward", "cpu_op", "python"),
        ("GeneratedBackwardFor_mine_f_default", "cpu_op", "python"),
        ("AddmmBackward0", "cpu_op", "dispatcher"),
        ("torch::autograd::AccumulateGrad", "cpu_op", "dispatcher"),
        ("CompiledFunctionBackward", "cpu_op", "dispatcher"),
        ("record_param_comms", "cpu_op", "dispatcher"),
        ("triton_poi_fused_add_0", "cpu_op", "launch"),
        ("triton kernel", "cpu_op", "launch"),
        ("_rms_norm_forward_kernel_0", "cpu_op", "launch"),
        ("aten::_copy_from", "cpu_op", "launch"),
        ("aten::_copy_from_and_resize", "cpu_op", "launch"),
        ("aten::copy_", "cpu_op", "dispatcher"),
        ("graph_0_cpp_fused_kernel_0", "cpu_op", "kernel"),
        ("mine::my_kernel_2", "cpu_op", "dispatcher"),
        ("aten::_fused_kernel_2", "cpu_op", "dispatcher"),
        ("cudaLaunchKernel", "cuda_runtime", "launch"),
        ("triton/compiler/compiler.py(226): compile", "python_function", "compile"),
        (
            "/env/lib/python3.11/site-packages/triton/compiler/compiler.py(400): _init_handles",
            "python_function",
            "python",
        ),
        ("cudaDeviceSynchronize", "cuda_runtime", "wait"),
        ("Torch-Compiled Region: 0/0", "cpu_op", "python"),
        ("## Call CompiledFxGraph abc ##", "user_annotation", "python"),
        ("compile_inner (dynamo_timed)", "user_annotation", "compile"),
        ("dynamo", "cpu_op", "compile"),
        ("hipHostMalloc", "hip_runtime", "allocation"),
        ("hipExtMallocWithFlags", "cuda_runtime", "allocation"),
        ("cuMemSetAccess", "cuda_driver", "allocation"),
        ("hipMemMap", "hip_runtime", "allocation"),
        ("hipMemcpyAsync", "hip_runtime", "launch"),
        ("train.py(3): f", "python_function", "python"),
        ("_C::shm_allreduce", "cpu_op", "wait"),
        ("_C::shm_recv_tensor_list", "cpu_op", "wait"),
        ("sgl_kernel::shm_allgather", "cpu_op", "wait"),
        ("_C::init_shm_manager", "cpu_op", "dispatcher"),
        ("something", "of_a_new_kind", "unattributed"),
    ],
)
def test_events(name: str, category: str, expected: str) -> None:
    assert CLASSIFIER.classify_event(name, category).category == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cudaDeviceSynchronize", "wait/device"),
        ("<built-in method acquire of _thread.lock object at 0x7f01>", "wait/lock"),
        ("threading.py(295): wait", "wait/lock"),
        ("queue.py(154): get", "wait/lock"),
        ("<built-in function sleep>", "wait/io"),
        ("selectors.py(403): select", "wait/io"),
        ("multiprocessing/connection.py(917): wait", "wait/io"),
        ("torch/utils/data/dataloader.py(1133): _try_get_data", "wait/data"),
        ("<built-in function collect>", "python/gc"),
        ("<frozen importlib._bootstrap>(1176): _find_and_load", "python/import"),
        ("/opt/env/lib/python3.11/site-packages/einops/einops.py(3): f", "python/library"),
        ("transformers/models/gpt2.py(3): forward", "python/library"),
        ("torch/nn/modules/module.py(3): forward", "python/framework"),
        ("/env/lib/python3.11/site-packages/torch/nn/modules/module.py(3): forward", "python/framework"),
        ("/opt/pytorch/torch/nn/modules/module.py(3): forward", "python/framework"),
        ("flash_attn/ops/triton/layer_norm.py(1010): forward", "python/library"),
        ("/env/lib/python3.11/site-packages/flash_attn/ops/triton/layer_norm.py(1010): forward", "python/library"),
        ("model/layers.py(3): forward", "python/user"),
    ],
)
def test_parts_of_python_events(name: str, expected: str) -> None:
    category = "cuda_runtime" if name.startswith("cuda") else "python_function"
    found = CLASSIFIER.classify_event(name, category)
    assert f"{found.category}/{found.part}" == expected


@pytest.mark.parametrize("name", ["<built-in function collect>", "<frozen importlib._bootstrap>(1176): _find_and_load"])
def test_collections_and_imports_keep_what_runs_below_them(name: str) -> None:
    assert CLASSIFIER.event_verdict(name, "python_function")[1]


def test_time_without_a_part_is_the_other_part() -> None:
    kernels = {Attribution("kernel"): 6, Attribution("kernel", "extension"): 2, Attribution("wait"): 5}
    assert parts_of("kernel", 4, kernels) == (Part("extension", 1), Part("other", 3))
    assert parts_of("kernel", 6, {Attribution("kernel"): 6}) == ()
    assert parts_of("wait", 5, kernels) == ()
    blocked = {Attribution("wait", "gil"): 2**60 + 1}
    assert [(part.name, part.ns) for part in parts_of("wait", 2**60 + 1, blocked) if part.ns] == [("gil", 2**60 + 1)]


def test_every_rule_is_justified_and_of_the_taxonomy() -> None:
    rules = load_rules()
    assert len(rules) > 30
    for rule in rules:
        assert rule.source
        assert rule.attribution.category in (*HOST_CATEGORIES, "neutral")
        category, part = rule.attribution.category, rule.attribution.part
        assert part in PARTS.get(category, (None,)) or (part is None and category in OPTIONAL_PARTS)


def test_own_rules_come_first(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[[rule]]\ncategory = "wait"\nmodule = "somebody"\nsource = "mine"\n')
    frames = stack(USER, "secret_work (somebody_elses.so)")
    assert default_classifier(own).classify(frames).attribution == Attribution("wait")


GOOD = 'category = "wait"\nnative = "x"\nsource = "s"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[rule]]\n" + GOOD + "colour = 1", "own.toml, rule 1: unknown key 'colour'"),
        (
            "[[rule]]\n" + GOOD + "[[rule]]\n" + GOOD.replace("wait", "waiting"),
            "own.toml, rule 2: no category 'waiting'; it is",
        ),
        ("[[rule]]\n" + GOOD.replace("wait", "python"), "own.toml, rule 1: python needs a part of"),
        ("[[rule]]\n" + GOOD.replace('"x"', '"("'), "own.toml, rule 1, native: bad pattern: "),
        ("[[rule]]\n" + GOOD.replace('"s"', '""'), "own.toml, rule 1: say in 'source' which file justifies it"),
        ("[[rule]]\n" + GOOD + 'under = ["nowhere"]', "own.toml, rule 1: 'under' names an unknown category"),
        ("[[rule]]\n" + GOOD + 'calls = "nobody"', "own.toml, rule 1: 'calls' names an unknown category"),
        ("[[rule]]\n" + GOOD + 'part = "nap"', "own.toml, rule 1: wait needs a part of"),
        (
            "[[rule]]\n" + GOOD.replace("wait", "guard") + 'part = "gil"',
            "own.toml, rule 1: guard needs a part of ('none',), not 'gil'",
        ),
        ("[[rule]\n", "own.toml is not TOML: "),
        ("x = 1\n", "own.toml must hold [[rule]] entries and nothing else"),
    ],
)
def test_bad_rules_say_which(tmp_path: Path, text: str, message: str) -> None:
    own = tmp_path / "own.toml"
    own.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_rules(own)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_rules_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^cannot read rules .*gone\.toml: No such file or directory$"):
        load_rules(tmp_path / "gone.toml")
