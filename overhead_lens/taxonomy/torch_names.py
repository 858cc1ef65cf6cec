"""PyTorch's names of events and functions, with the files that define them.

Standard library only: measured processes import it.
"""

from __future__ import annotations

import re

OPERATOR_PREFIX = "aten::"
"""Operators of ATen (``aten/src/ATen/native/native_functions.yaml``)."""

OPERATOR_ENTRY = re.compile(r"at::_ops::(?P<name>\w+)::(?P<how>call|redispatch)")
"""C++ entry of an operator (``torchgen/gen.py``, ``Operators.h``)."""

_OVERLOAD = re.compile(r"(?<=\w_)_(?=[a-z])\w+$|_(Tensor|Scalar|Dimname)\w*$|_out$")

OPAQUE_KERNEL = re.compile(
    r"c10::function_ref<|std::(_Function_handler|function|__invoke\w*)\b"
    r"|at::(internal::invoke_parallel|parallel_for|parallel_reduce)\b"
    r"|at::(TensorIteratorBase|internal)::\w+(\(.*\{lambda|.*\._omp_fn\.)"
    r"|at::native::(\w+::|\(anonymous namespace\)::)*(VectorizedLoop2d|LoopReduce|vectorized_loop|basic_loop|loop_2d_from_1d)\b"
)
"""Functions of an operator's loop whose names do not say which (``aten/src/ATen/native/cpu/Loops.h``, ``Parallel-inl.h``)."""

NATIVE_FUNCTION_PREFIX = "at::native::"
"""C++ functions that operators end in (``aten/src/ATen/native``)."""

ENGINE_PREFIX = "autograd::engine"
"""Events of the autograd engine (``torch/csrc/autograd/engine.cpp``)."""

BACKWARD_NODE_PREFIX = "autograd::engine::evaluate_function"
"""One node of a backward pass (``torch/csrc/autograd/engine.cpp``)."""

OLD_NODE = re.compile(r"\w+Backward\d*$|torch::autograd::")
"""The same up to PyTorch 1.9, which records nodes by themselves (``torch/csrc/autograd/function.h``)."""

RUN_BACKWARD = "run_backward of torch._C._EngineBase"
"""The Python call that waits for a backward pass (``torch/csrc/autograd/python_engine.cpp``)."""

COMPILED_REGION_PREFIX = "Torch-Compiled Region"
"""A compiled frame (``torch/_dynamo/eval_frame.py``)."""

COMPILED_CODE = re.compile(rf"{COMPILED_REGION_PREFIX}|(## Call )?CompiledFxGraph")
"""Events in which Inductor's code runs (``torch/_dynamo/eval_frame.py``, ``torch/_inductor/output_code.py``)."""

CACHE_LOOKUP = "TorchDynamo Cache Lookup"
"""Guards of a compiled frame (``torch/csrc/dynamo/eval_frame.c``)."""

FAST_ANNOTATION_PREFIXES = ("Pregraph bytecode", "AOTDispatcher Runtime Wrapper Prologue", "## Call CompiledFxGraph")
"""Annotations of the compiled runtime that cost less than others (``torch/_functorch``, ``torch/_inductor``)."""

PROFILER_STEP = re.compile(r"ProfilerStep#(\d{1,18})$")
"""A step of torch.profiler's schedule (``torch/profiler/profiler.py``)."""

DECODE_STEPS = (
    re.compile(r"step\[DECODE bs=\d+\]$"),
    re.compile(r"execute_(\d+_)?context_0\(.*\)_generation_(?P<requests>[1-9]\d*)\((sq)?(?P=requests)\D"),
)
"""A step of decoding without prefill, one token of each sequence, as the profilers of SGLang and vLLM name it. With speculative
decoding vLLM schedules more tokens than requests (``gpu_worker.py``, ``annotate_profile``)."""

COLLECTIVE_PREFIXES = ("c10d::", "nccl:")
"""Communication called by the host (``torch/csrc/distributed/c10d``)."""

COLLECTIVE_ARGUMENTS = "record_param_comms"
"""The event below a collective that holds its arguments (``torch/csrc/distributed/c10d/ParamCommsUtils.hpp``)."""

COMMUNICATION_KERNEL = re.compile(
    r"nccl|rccl|msccl|oneccl|nvshmem|cross_device_reduce|(one|two)_?shot_?all_?reduce|multimem_(all|one_shot)"
    r"|all_?reduce_((one|two)_?shot|fusion_kernel|prototype)|scatter_cross_device_store"
    r"|(deep_|dpsk::)ep::int(ra|er)node(_ll)?::(?!get_dispatch_layout)"
    r"|hybrid_ep::(dispatch|combine|device_sync)_kernel|Ep(Dispatch|Combine)Int(ra|er)Node",
    re.IGNORECASE,
)
"""Kernels of NCCL, RCCL, MSCCL, DeepEP and MORI, and the all-reduces of torch's symmetric memory, vLLM, SGLang, AITER,
FlashInfer, TensorRT-LLM and QuickReduce. Not every all-reduce: within a device, normalizations have a ``WarpAllReduce``."""

COPY_KERNEL = re.compile(r"__amd_rocclr_(copyBuffer|fillBuffer)|MEMORY_COPY_(HOST|DEVICE)_TO_(HOST|DEVICE)(\.kd)?$")
"""Copies and fills that older ROCm records among the kernels (ROCm/clr, rocclr/device: blit kernels; TraceLens, util.py)."""

PROFILER_OVERHEAD = "overhead"
"""Category of what CUPTI and the driver take for themselves (``libkineto/src/output_json.cpp``)."""

DRIVER_OVERHEAD = frozenset(
    {"Driver Compiler", "Runtime Triggered Module Loading", "Lazy Function Loading", "Command Buffer Full"}
)
"""Those of the driver, which a program without the profiler has too (CUPTI, ``CUpti_ActivityOverheadKind``)."""

PROFILER_PAUSE = "Activity Buffer Request"
"""One of these: CUPTI makes room for events, in the thread that calls the runtime (``libkineto/src/CuptiActivity.cpp``)."""

PROFILER_RANGE = "cuda_profiler_range"
"""Category of ranges of CUPTI's counters (``libkineto/src/output_json.cpp``)."""

DEVICE_SYNCHRONIZE = re.compile(r"(Device|Ctx|Context)Synchronize|^synchronize$")
STREAM_SYNCHRONIZE = re.compile(
    r"StreamSynchronize|^synchronizeStream$|urQueueFinish|zeCommand(Queue|ListHost)Synchronize"
)
EVENT_SYNCHRONIZE = re.compile(r"EventSynchronize|urEventWait|ze(Event|Fence)HostSynchronize")
STREAM_WAITS = re.compile(r"StreamWaitEvent")
ANY_COPY = re.compile(r"[mM]emcpy")
PAGEABLE_COPY = re.compile(r"Memcpy .*Pageable")
NON_BLOCKING_COPY = re.compile(r"Memcpy (DtoD|PtoP|(?!HtoH).*Pinned)")
COPY_TO_DEVICE = re.compile(r"Memcpy HtoD")
ASYNCHRONOUS_COPY = re.compile(r"(cu|cuda|hip)Memcpy\w*Async")
RELEASE = re.compile(r"(cuda|hip)Free$|cuMemFree(_v2)?$")
DRIVER_ALLOCATION = re.compile(
    r"(cuda|hip)(Malloc|Free|MallocManaged|HostAlloc|FreeHost|HostMalloc|HostFree)$|hipExtMallocWithFlags$"
    r"|(cu|hip)Mem(Create|Map|Unmap|Release|SetAccess|AddressReserve|AddressFree|Alloc|Free|HostAlloc|FreeHost)(_v2)?$"
    r"|urUSM((Device|Host|Shared)Alloc|Free)$|zeMem(Alloc(Device|Host|Shared)|Free)$"
)
BEGINS_CAPTURE, ENDS_CAPTURE = (re.compile(rf"(cuda|hip)Stream{word}Capture") for word in ("Begin", "End"))
INSTANTIATES = re.compile(r"(cu|cuda|hip)GraphInstantiate")
GRAPH_LAUNCH = "GraphLaunch"
"""Calls of the runtimes and drivers of CUDA, HIP, XPU and MTIA, and what they copy (``cuda_runtime_api.h``,
``hip_runtime_api.h``, ``ur_api.h``, ``ze_api.h``)."""

MODULE_PREFIX = "nn.Module: "
FUNCTION = re.compile(r"(?!.*(^|/)torch/)(?!<frozen)(?!<string>)[^:]*\(\d+\): ")
"""A module's call, and a Python function outside of torch (``torch/csrc/autograd/profiler_python.cpp``)."""

SCOPE = re.compile(rf"\w+::|{COMPILED_REGION_PREFIX}")
"""An operator with its namespace, or a compiled frame."""

ACCUMULATES = "AccumulateGrad"
"""The node that adds to a leaf's gradient (``torch/csrc/autograd/functions/accumulate_grad.h``)."""

OPTIMIZER_STEP = re.compile(r"Optimizer\.step#")
ZERO_GRAD = re.compile(r"Optimizer\.zero_grad#|.*: zero_grad$")
PLAIN_OPTIMIZER_STEP = re.compile(
    rf"{OPTIMIZER_STEP.pattern}(Adam|AdamW|SGD|Adagrad|RMSprop|NAdam|RAdam|Adamax|Adadelta|Rprop|ASGD)\.step$"
)
"""What optimizers record (``torch/optim/optimizer.py``); the last those of torch with ``foreach``."""

LOADS_DATA = re.compile(r"enumerate\(DataLoader\)#|(.*/)?torch/utils/data/dataloader\.py\(\d+\): __next__$")
"""A step of a loader (``torch/utils/data/dataloader.py``)."""

OLD_ANNOTATION = re.compile(
    rf"{PROFILER_STEP.pattern}|Optimizer\.(step|zero_grad)#|enumerate\(DataLoader\)#|DistributedDataParallel\.forward$"
)
"""What torch's Python code annotates (also ``nn/parallel/distributed.py``); PyTorch up to 1.9 and torch_npu record operators."""

PRODUCTS = frozenset({"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_scaled_mm"})
"""Operators that multiply matrices."""

VIEWS = frozenset(
    f"aten::{name}"
    for name in (
        "view", "_unsafe_view", "as_strided", "transpose", "t", "permute", "expand", "squeeze", "unsqueeze", "select",
        "slice", "narrow", "detach", "alias", "_reshape_alias", "unbind", "split",
    )
)  # fmt: skip
"""Operators that only make a view of their argument's storage."""

COMPOSITES = frozenset(
    f"aten::{name}"
    for name in (
        "to", "contiguous", "reshape", "flatten", "type_as", "resolve_conj", "resolve_neg", "item", "is_nonzero", "matmul",
        "linear", "dropout", "layer_norm", "batch_norm", "conv1d", "conv2d", "conv3d", "cross_entropy_loss", "nll_loss",
        "nll_loss_nd", "scaled_dot_product_attention", "max_pool2d", "einsum", "chunk", "square", "group_norm", "rms_norm",
        "outer", "pad", "cdist", "broadcast_tensors", "expand_as", "log_sigmoid", "thnn_conv2d", "lstm",
        "gru", "_batch_norm_impl_index", "_to_copy", "clone", "zeros", "ones", "full", "repeat", "convolution",
        "_convolution", "embedding", "flatten_dense_tensors", "unflatten_dense_tensors",
    )
)  # fmt: skip
"""Operators that compute by calling others only: CompositeImplicitAutograd in ``aten/src/ATen/native/native_functions.yaml``.
Those from ``_to_copy`` on are not marked so there, but their functions below ``aten/src/ATen/native`` only call others."""

WITHOUT_KERNEL = VIEWS | COMPOSITES
"""Operators whose own time holds no kernel."""


def communicates(name: str) -> bool:
    """Whether an event is a collective's call, or holds its arguments."""
    return name == COLLECTIVE_ARGUMENTS or name.startswith(COLLECTIVE_PREFIXES)


def operator_of_entry(entry: str) -> str:
    """``bernoulli__float`` as ``aten::bernoulli_``: an operator's C++ name without its overload suffix."""
    return f"{OPERATOR_PREFIX}{_OVERLOAD.sub('', entry)}"
