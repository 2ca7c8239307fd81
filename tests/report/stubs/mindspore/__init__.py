CONTEXT = {}
_KEYS = {
    "device_num", "global_rank", "gradients_mean", "gradient_fp32_sync", "parallel_mode", "search_mode",
    "auto_parallel_search_mode", "parameter_broadcast", "strategy_ckpt_load_file", "strategy_ckpt_save_file",
    "full_batch", "dataset_strategy", "enable_parallel_optimizer", "parallel_optimizer_config", "enable_alltoall",
    "all_reduce_fusion_config", "pipeline_stages", "pipeline_config", "pipeline_segments", "grad_accumulation_step",
    "comm_fusion", "strategy_ckpt_config", "force_fp32_communication", "group_ckpt_save_file", "auto_pipeline",
}


def set_auto_parallel_context(**kwargs):
    for key, value in kwargs.items():
        if key not in _KEYS:
            raise ValueError(f"set_auto_parallel_context has no argument {key}")
        CONTEXT[key] = value
    if CONTEXT["parallel_mode"] not in ("semi_auto_parallel", "auto_parallel", "data_parallel", "stand_alone"):
        raise ValueError(CONTEXT["parallel_mode"])
    strategy = CONTEXT.get("dataset_strategy", "data_parallel")
    if isinstance(strategy, str):
        if strategy not in ("full_batch", "data_parallel"):
            raise ValueError(strategy)
    elif not all(isinstance(entry, tuple) and all(isinstance(n, int) for n in entry) for entry in strategy):
        raise TypeError("dataset_strategy is a tuple of tuples of int")


class Layout:
    def __init__(self, device_matrix, alias_name, rank_list=None):
        if not isinstance(device_matrix, tuple) or not isinstance(alias_name, tuple):
            raise TypeError("device_matrix and alias_name are tuples")
        if len(device_matrix) != len(alias_name):
            raise ValueError("device_matrix and alias_name have one length")
        if len(set(alias_name)) != len(alias_name) or "None" in alias_name or "" in alias_name:
            raise ValueError(f"alias_name {alias_name}")
        self.sizes = dict(zip(alias_name, device_matrix))
        self.pieces = None

    def __call__(self, *tensor_map):
        made = Layout(tuple(self.sizes.values()), tuple(self.sizes))
        used, pieces = set(), []
        for entry in tensor_map:
            count = 1
            for name in entry if isinstance(entry, tuple) else (entry,):
                if name == "None":
                    continue
                if name not in self.sizes or name in used:
                    raise ValueError(f"{name} is no alias, or used twice")
                used.add(name)
                count *= self.sizes[name]
            pieces.append(count)
        made.pieces = tuple(pieces)
        return made


class Primitive:
    def __init__(self):
        self.in_strategy = self.out_strategy = None

    def shard(self, in_strategy=None, out_strategy=None):
        for strategy in (in_strategy, out_strategy):
            if strategy is None:
                continue
            if not isinstance(strategy, tuple):
                raise TypeError("strategy must be tuple type")
            if len({isinstance(entry, Layout) for entry in strategy}) > 1:
                raise TypeError("all entries are tuples, or all are Layouts")
            for entry in strategy:
                if not isinstance(entry, Layout) and not all(isinstance(n, int) for n in entry):
                    raise TypeError("the value of strategy must be int type")
        if out_strategy is not None and in_strategy is None:
            raise ValueError("out_strategy without in_strategy")
        self.in_strategy, self.out_strategy = in_strategy, out_strategy
        return self

    def recompute(self, mode=True):
        self.is_recomputed = mode
        return self
