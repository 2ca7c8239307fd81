class _ParameterKind(type):
    def __instancecheck__(cls, instance):
        return getattr(instance, "is_parameter", False)


class Parameter(metaclass=_ParameterKind):
    def __new__(cls, data=None, requires_grad=True):
        data.requires_grad = requires_grad
        data.is_parameter = True
        return data


class Module:
    def __init__(self):
        self._children = {}
        self._parameters = {}
        self._buffers = {}
        self._hooks = []

    def __getattr__(self, name):
        for held in ("_parameters", "_buffers", "_children"):
            if name in self.__dict__.get(held, {}):
                return self.__dict__[held][name]
        raise AttributeError(name)

    def __setattr__(self, name, value):
        if isinstance(value, Parameter):
            self.register_parameter(name, value)
        elif name in self.__dict__.get("_parameters", {}):
            raise TypeError(f"cannot assign '{name}': torch.nn.Parameter or None expected")
        elif name in self.__dict__.get("_buffers", {}):
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def named_children(self):
        return self._children.items()

    def register_parameter(self, name, param):
        if not isinstance(param, Parameter):
            raise TypeError(f"'{name}' is no torch.nn.Parameter")
        if "." in name or name == "" or (hasattr(self, name) and name not in self._parameters):
            raise KeyError(name)
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        if "." in name or name == "" or (hasattr(self, name) and name not in self._buffers):
            raise KeyError(name)
        self._buffers[name] = tensor

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        self._hooks.append(hook)

    def __call__(self, *inputs):
        result = inputs[0]
        for hook in self._hooks:
            changed = hook(self, inputs, result)
            result = result if changed is None else changed
        return result
