"""check_export.py TARGET: runs plan.py beside it and compares it with expected.py, which the test wrote from the plan."""
import sys

import expected

target = sys.argv[1]
cannot_say = open("cannot_say.txt").read()
faults = []


def check(condition, *what):
    if not condition:
        faults.append(" ".join(str(part) for part in what))


def folded(name):
    return ".".join("*" if part.isdigit() else part for part in name.split("."))


def said(name, table):
    """True if the table has the name; else the export must have said that it cannot say it."""
    if name in table:
        return True
    check(name in cannot_say or folded(name) in cannot_say, name, "is neither said nor refused")
    return False


def check_held(name, held, wanted):
    """Every piece lies as the plan says, or the export said that it only has the nearest placement."""
    refused = {line.split()[0] for line in cannot_say.splitlines() if line}
    check(held == wanted or name in refused or folded(name) in refused, name, held)


def check_jax():
    import jax
    import plan

    class Array:
        def __init__(self, shape):
            self.shape = shape

    for table, tensors in ((plan.INPUTS, expected.INPUTS), (plan.PARAMETERS, expected.PARAMETERS)):
        for name, (shape, held) in tensors.items():
            if said(name, table):
                check(list(table[name].devices_indices_map(shape).values()) == held, name, table[name].spec)
                jax.device_put(Array(shape), table[name])
    for name, (shape, held) in expected.STATES.items():
        key = name if name in plan.STATES else expected.OWNERS[name]
        if said(key, plan.STATES):
            check(list(plan.STATES[key].devices_indices_map(shape).values()) == held, name, plan.STATES[key].spec)
    for name, sharding in plan.CONSTRAINTS.items():
        shape, layouts = expected.RESULTS[name]
        check(list(sharding.devices_indices_map(shape).values()) in layouts, name, sharding.spec)
        plan.constrain(name, Array(shape))
    plan.constrain("no such operator", Array((1,)))
    # The same parameters as a tree, by whose paths they are found again.
    tree = {}
    for name, (shape, _) in expected.PARAMETERS.items():
        if name not in plan.PARAMETERS:
            continue
        node = tree
        *blocks, last = name.split(".")
        for part in blocks:
            node = node.setdefault(part, {})
        node[last] = Array(shape)
    jax.device_put(tree, plan.tree(tree, plan.PARAMETERS))


def check_dtensor():
    import plan
    from torch import nn
    from torch.distributed.tensor import DTensor, Replicate, Tensor, distribute_tensor
    from torch.distributed.tensor.parallel import parallelize_module

    words = {"gamma": "weight", "beta": "bias", "embedding_table": "weight"}
    buffers = {"moving_mean": "running_mean", "moving_variance": "running_var"}
    model = nn.Module()

    def module(name):
        node = model
        for part in name.split(".") if name else ():
            node = node._children.setdefault(part, nn.Module())
        return node

    for name in expected.RESULTS:
        module(name)
    parameters = {}
    for name, (shape, held) in expected.PARAMETERS.items():
        block, _, last = name.rpartition(".")
        of = module(block)
        if last in buffers:
            of.register_buffer(buffers[last], Tensor(shape))
            parameters[name] = (of, buffers[last], held)
        else:
            of.register_parameter(words.get(last, last), nn.Parameter(Tensor(shape)))
            parameters[name] = (of, words.get(last, last), held)
    ranks = range(expected.NUM_DEVICES)
    parallelize_module(model, plan.mesh[plan.mesh.mesh_dim_names[0]], plan.PLAN)
    for name, (of, key, held) in parameters.items():
        check(key in (of._buffers if key in buffers.values() else of._parameters), name, "is another kind of tensor")
        tensor = getattr(of, key)
        if "." not in name and name in getattr(plan, "PARAMETERS", {}):
            tensor = distribute_tensor(tensor, plan.mesh, plan.PARAMETERS[name])
        if isinstance(tensor, DTensor):
            check_held(name, [tensor.held(rank) for rank in ranks], held)
        else:
            check(False, name, "stays a plain tensor")
    for name, (shape, held) in expected.INPUTS.items():
        if said(name, plan.INPUTS):
            tensor = distribute_tensor(Tensor(shape), plan.mesh, plan.INPUTS[name])
            check_held(name, [tensor.held(rank) for rank in ranks], held)
    for name, (shape, held) in expected.STATES.items():
        key = name if name in plan.STATES else expected.OWNERS[name]
        if said(key, plan.STATES):
            tensor = distribute_tensor(Tensor(shape), plan.mesh, plan.STATES[key])
            check_held(key, [tensor.held(rank) for rank in ranks], held)
    for name, (shape, layouts) in expected.RESULTS.items():
        of = module(name)
        if of._hooks:
            result = of(DTensor(shape, plan.mesh, [Replicate()] * plan.mesh.ndim))
            check([result.held(rank) for rank in ranks] in layouts, name)


def check_mindspore():
    import mindspore
    import plan

    class Cell(mindspore.Primitive):
        def __getitem__(self, index):
            return getattr(self, str(index))

    net = Cell()
    cells = {}
    for name in expected.OPERANDS:
        node = net
        for part in name.split("."):
            if part not in node.__dict__:
                setattr(node, part, Cell())
            node = node.__dict__[part]
        cells[name] = node
    plan.configure()
    check(mindspore.CONTEXT["device_num"] == expected.NUM_DEVICES, "device_num")
    check(plan.shard(net) is net, "shard gives the net back")
    if mindspore.CONTEXT["parallel_mode"] == "data_parallel":
        for name, operands in expected.OPERANDS.items():
            cuts = [[n for n in pieces if n != 1] for pieces in operands]
            check(all(cut in ([], [expected.NUM_DEVICES]) for cut in cuts), name, "is not data parallel", operands)
            check(cells[name].in_strategy is None, name, "has a strategy, which data_parallel ignores")
        return
    sharded = {name: cell for name, cell in cells.items() if cell.in_strategy is not None}
    for name, operands in expected.OPERANDS.items():
        if said(name, sharded):
            pieces = [getattr(entry, "pieces", entry) for entry in sharded[name].in_strategy]
            check(pieces == operands, name, pieces, operands)


def check_deepspeed():
    import plan

    config = plan.CONFIG
    check(config["zero_optimization"]["stage"] in (0, 1, 2, 3), config)
    ranks = expected.NUM_DEVICES // config.get("tensor_parallel", {}).get("autotp_size", 1)
    check(config["train_batch_size"] == config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"]
          * ranks, "DeepSpeed checks that the three batch sizes agree", config)


globals()[f"check_{target}"]()
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
