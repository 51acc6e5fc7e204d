"""MLServer's runtimes; `mlserver start FOLDER` runs the one that the folder's settings name."""

import numpy as np
from mlserver import MLModel
from mlserver.types import InferenceRequest, InferenceResponse, ResponseOutput
from net import answer, build


class Echo(MLModel):
    """Sends back what came."""

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        outputs = [
            ResponseOutput(name=one.name, shape=one.shape, datatype=one.datatype, data=one.data)
            for one in payload.inputs
        ]
        return InferenceResponse(model_name=self.name, outputs=outputs)


class Cnn(MLModel):
    """Batches of images, put together by MLServer's adaptive batching."""

    async def load(self) -> bool:
        self.net = build()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        images = np.asarray(payload.inputs[0].data.root, dtype=np.float32).reshape(-1, 784)
        scores = answer(self.net, images)
        data = [value for row in scores for value in row]
        output = ResponseOutput(name="y", shape=[len(scores), 10], datatype="FP32", data=data)
        return InferenceResponse(model_name=self.name, outputs=[output])
