class DictKey:
    def __init__(self, key):
        self.key = key


class SequenceKey:
    def __init__(self, idx):
        self.idx = idx


def tree_map_with_path(f, tree, *rest, is_leaf=None, _path=()):
    if isinstance(tree, dict):
        return {key: tree_map_with_path(f, tree[key], _path=_path + (DictKey(key),)) for key in tree}
    if isinstance(tree, list):
        return [tree_map_with_path(f, item, _path=_path + (SequenceKey(i),)) for i, item in enumerate(tree)]
    return f(_path, tree)
