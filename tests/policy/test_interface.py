"""What a policy file must not hold, on small graphs that ONNX itself accepts."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from keystride.policy.bundle import PolicyError
from keystride.policy.interface import MOST_VALUES, OPERATORS, check_shapes, read_properties

Model = onnx.ModelProto


def model(operator: str = "Add", constant: np.ndarray | None = None, domain: str = "") -> Model:
    values = numpy_helper.from_array(np.ones(3, np.float32) if constant is None else constant, "c")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", 3]) for name in "xy")
    graph = helper.make_graph([helper.make_node(operator, ["x", "c"], ["y"], domain=domain)], "g", [x], [y], [values])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(made, {"name": "Görli", "empty": ""})
    return made


def test_properties_are_read_from_the_bytes_of_a_file() -> None:
    assert read_properties(model().SerializeToString()) == {"name": "Görli", "empty": ""}


def with_external_data(made: Model) -> None:
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")


def with_nested_graph(made: Model) -> None:
    made.graph.node[0].attribute.append(helper.make_attribute("then_branch", model().graph))


def with_false_shape(made: Model) -> None:
    made.graph.initializer[0].dims[0] = 1 << 40


def with_function(made: Model) -> None:
    made.functions.add(name="f", domain="mine")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_external_data, "external data"),
        (with_nested_graph, "graphs inside of its graph"),
        (with_false_shape, "a tensor of shape .* holds 12 bytes"),
        (with_function, "functions of its own"),
    ],
)
def test_what_a_policy_does_not_need_is_refused(change: Callable[[Model], None], message: str) -> None:
    made = model()
    change(made)
    with pytest.raises(PolicyError, match=message):
        read_properties(made.SerializeToString())


def test_operators_are_those_of_exported_networks() -> None:
    assert {"MatMul", "Softmax"} <= OPERATORS
    with pytest.raises(PolicyError, match="operator 'ConstantOfShape'"):
        read_properties(model("ConstantOfShape").SerializeToString())
    with pytest.raises(PolicyError, match=r"operators from 'com\.microsoft'"):
        read_properties(model(domain="com.microsoft").SerializeToString())


def test_shapes_in_constants_are_limited_and_to_the_end_is_not_a_shape() -> None:
    read_properties(model(constant=np.array([0, np.iinfo(np.int64).max])).SerializeToString())
    for shape in ([MOST_VALUES + 1], [1 << 13, 1 << 13]):
        with pytest.raises(PolicyError, match="shapes of at most"):
            read_properties(model(constant=np.array(shape, dtype=np.int64)).SerializeToString())


def test_a_file_cut_anywhere_is_broken_or_lacks_its_end() -> None:
    """No cut raises anything but PolicyError; one within the graph is always noticed."""
    content = model().SerializeToString()
    for length in range(len(content)):
        try:
            found = read_properties(content[:length])
        except PolicyError:
            continue
        assert found.items() < {"name": "Görli", "empty": ""}.items()
    for noise in (b"", b"?", b"\x3a\x7f", b"\xff" * 20):
        with pytest.raises(PolicyError, match="broken"):
            read_properties(noise)


def test_inputs_are_compared_by_name_type_and_shape() -> None:
    expected = {"goal": ("tensor(float)", ("K", 3))}
    check_shapes("input", {"goal": ("tensor(float)", ["robots", "keyframes", 3])}, expected)
    for found, message in (
        ({}, "it lacks the input 'goal'"),
        ({"goal": ("tensor(float)", ["B", "K", 3]), "x": ("tensor(float)", ["B"])}, "an unknown input 'x'"),
        ({"goal": ("tensor(double)", ["B", "K", 3])}, r"allowed: tensor\(float\) \[B, K, 3\]"),
        ({"goal": ("tensor(float)", ["B", "K", 4])}, "allowed"),
        ({"goal": ("tensor(float)", ["B", 5, 3])}, "allowed"),  # a fixed number of keyframes
    ):
        with pytest.raises(PolicyError, match=message):
            check_shapes("input", found, expected)
