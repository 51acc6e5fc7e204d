"""What `inference.proto` says is what the code knows."""

import re
from pathlib import Path

import pliant.serve.protocol.grpc.schema as schema_module
from pliant.serve.protocol.grpc.schema import WireCall, inference_schema, read_schema

TEXT = Path(schema_module.__file__).with_name("inference.proto").read_text()
SCALARS = {"bool", "int32", "int64", "uint32", "uint64", "float", "double", "string", "bytes"}


def test_every_field_and_call_of_the_file_is_known() -> None:
    schema = inference_schema()
    own = [one for one in schema.messages.values() if "." not in one.name]

    assert sum(len(one.by_number) for one in own) == len(re.findall(r"= \d+;", TEXT))
    assert len(own) == TEXT.count("\nmessage ")
    assert len(schema.calls) == TEXT.count("rpc ")


def test_numbers_and_names_stand_once_in_a_message() -> None:
    for message in inference_schema().messages.values():
        assert len(message.by_number) == len(message.by_name)


def test_no_message_holds_itself() -> None:
    messages = inference_schema().messages

    def depth(name: str, above: tuple[str, ...]) -> int:
        assert name not in above
        kinds = {field.kind for field in messages[name].by_number.values()} - SCALARS
        return 1 + max((depth(kind, (*above, name)) for kind in kinds), default=0)

    assert max(depth(name, ()) for name in messages) <= 5


def test_a_map_is_messages_of_a_key_and_a_value() -> None:
    messages = inference_schema().messages
    field = messages["ModelInferRequest"].by_name["parameters"]

    entry = messages[field.kind]

    assert (field.number, field.is_map, field.is_repeated) == (4, True, True)
    assert [(one.number, one.name, one.kind) for one in entry.by_number.values()] == [
        (1, "key", "string"),
        (2, "value", "InferParameter"),
    ]


def test_a_call_says_its_path_and_its_messages() -> None:
    path = "/inference.GRPCInferenceService/ModelStreamInfer"

    assert inference_schema().calls[path] == WireCall(
        path=path, request="ModelInferRequest", response="ModelStreamInferResponse", is_stream=True
    )


def test_comments_are_no_fields() -> None:
    schema = read_schema("package p;\nservice S {\n}\nmessage M {\n  // bool no = 2;\n  bool yes = 1;\n}\n")

    assert list(schema.messages["M"].by_name) == ["yes"]
