class Parameter:
    def __new__(cls, data=None, requires_grad=True):
        data.requires_grad = requires_grad
        return data


class Module:
    def __init__(self):
        self._children = {}
        self._parameters = {}
        self._hooks = []

    def __getattr__(self, name):
        for held in (self.__dict__.get("_parameters", {}), self.__dict__.get("_children", {})):
            if name in held:
                return held[name]
        raise AttributeError(name)

    def named_children(self):
        return self._children.items()

    def register_parameter(self, name, param):
        if "." in name or name == "":
            raise KeyError(name)
        self._parameters[name] = param

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        self._hooks.append(hook)

    def __call__(self, *inputs):
        result = inputs[0]
        for hook in self._hooks:
            changed = hook(self, inputs, result)
            result = result if changed is None else changed
        return result
