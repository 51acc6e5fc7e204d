/** Code that asks an endpoint: curl, Pliant's Python client, Triton's. It names a variable for the token, never a token. */
import { pythonOf, quoteWord } from "../submit/words";
import { exampleRequest, type Input } from "./inputs";

export interface Target {
  name: string;
  httpUrl: string;
  grpcAddress: string | null;
  inputs: readonly Input[];
  /** The model speaks IBM's API alone: JSON of its own. */
  raw: boolean;
}

export type Language = "curl" | "Python" | "tritonclient" | "CLI";

export function callsOf(target: Target): Partial<Record<Language, string>> {
  return {
    curl: curlOf(target),
    Python: pythonCall(target),
    ...(!target.raw && target.grpcAddress !== null && { tritonclient: tritonOf(target, target.grpcAddress) }),
    CLI: `pliant predict ${quoteWord(target.name)}${target.raw ? " --raw" : ""} --data ${quoteWord(dataOf(target))}`,
  };
}

function dataOf(target: Target): string {
  const example = target.raw ? null : exampleRequest(target.inputs);
  const text = example === null ? "" : JSON.stringify(example);
  return text === "" || text.length > 300 ? "@request.json" : text;
}

function curlOf(target: Target): string {
  const path = target.raw ? `/dlim/v1/inference/${target.name}` : `/v2/models/${target.name}/infer`;
  return [
    `curl ${quoteWord(target.httpUrl + path)} \\`,
    `  -H "Authorization: Bearer $PLIANT_TOKEN" \\`,
    "  -H 'Content-Type: application/json' \\",
    `  --data ${quoteWord(dataOf(target))}`,
  ].join("\n");
}

function pythonCall(target: Target): string {
  const head = ["from pliant.client import Client", ""];
  if (target.raw) {
    return [
      ...head,
      "with Client.connect() as client:",
      `    print(client.endpoints.predict(${pythonOf(target.name)}, {}, raw=True))`,
    ].join("\n");
  }
  const inputs = target.inputs.length > 0 ? target.inputs : [{ name: "x", datatype: "FP32", shape: [1] }];
  const arrays = inputs.map((one) => `${pythonOf(one.name)}: ${zerosOf(one)}`).join(", ");
  return [
    "import numpy as np",
    ...head,
    "with Client.connect() as client:",
    `    outputs = client.endpoints.predict(${pythonOf(target.name)}, {${arrays}})`,
    "    print(outputs)",
  ].join("\n");
}

function tritonOf(target: Target, address: string): string {
  const inputs = target.inputs.length > 0 ? target.inputs : [{ name: "x", datatype: "FP32", shape: [1] }];
  const lines = inputs.flatMap((one, index) => {
    const shape = pythonOf(one.shape.map((size) => Math.max(1, size)));
    return [
      `input_${index} = triton.InferInput(${pythonOf(one.name)}, ${shape}, ${pythonOf(one.datatype)})`,
      `input_${index}.set_data_from_numpy(${zerosOf(one)})`,
    ];
  });
  return [
    "import os",
    "",
    "import numpy as np",
    "import tritonclient.grpc as triton",
    "",
    `client = triton.InferenceServerClient(${pythonOf(address)}${target.httpUrl.startsWith("https") ? ", ssl=True" : ""})`,
    ...lines,
    'headers = {"authorization": "Bearer " + os.environ["PLIANT_TOKEN"]}',
    `answer = client.infer(${pythonOf(target.name)}, [${inputs.map((_, index) => `input_${index}`).join(", ")}], headers=headers)`,
    "print(answer.get_response())",
  ].join("\n");
}

const NUMPY: Readonly<Record<string, string>> = {
  FP16: "float16",
  FP32: "float32",
  FP64: "float64",
  BOOL: "bool",
  BYTES: "object",
  INT8: "int8",
  INT16: "int16",
  INT32: "int32",
  INT64: "int64",
  UINT8: "uint8",
  UINT16: "uint16",
  UINT32: "uint32",
  UINT64: "uint64",
};

function zerosOf(input: Input): string {
  const shape = pythonOf(input.shape.map((size) => Math.max(1, size)));
  return `np.zeros(${shape}, dtype=${pythonOf(NUMPY[input.datatype] ?? "float32")})`;
}
