"""Some 600 fixed requests over all transports of the server.

A case is a dictionary. Its key `way` is "grpc", "stream", "http" or "raw". The other keys depend on
this. Pictures and tensors are made in this file. The cases depend only on this file, the samples
and the fuzzers' corpora, so they are the same in each run.
"""

import base64
import json
import pathlib
import struct

SAMPLES = pathlib.Path('client/samples')
CORPUS = pathlib.Path('tests/fuzz/corpus')
VISION = 'sfmamba.v1.VisionService'
KSERVE = 'inference.GRPCInferenceService'
ADMIN = 'sfmamba.v1.AdminService'
HEALTH = 'grpc.health.v1.Health'

MODELS = {'Classify': 'everyday', 'Detect': 'everyday_detector', 'Segment': 'everyday_segmenter'}
VERBS = {'Classify': 'classify', 'Detect': 'detect', 'Segment': 'segment'}


def text(data):
    """Encodes bytes for protobuf's JSON mapping."""
    return base64.b64encode(data).decode()


def sample(name):
    return (SAMPLES / name).read_bytes()


def pictures():
    """Yields (name, bytes) of every picture in the decoders' corpora and of some broken pictures.
    """
    for folder in ('image_decoder', 'image_header'):
        for path in sorted((CORPUS / folder).iterdir()):
            yield f'{folder}/{path.name}', path.read_bytes()
    jpeg = sample('render_01.jpg')
    for name, data in [('empty', b''), ('one byte', b'\xff'), ('text', b'hello'),
                       ('half', jpeg[:len(jpeg) // 2]), ('no end', jpeg[:-2]),
                       ('junk after', jpeg + b'junk')]:
        yield name, data


def pixels(**changes):
    fields = {'width': 8, 'height': 6, 'format': 'RGB8', 'data': text(bytes(range(144)))}
    fields.update(changes)
    return {'pixels': {key: value for key, value in fields.items() if value is not None}}


def tensor(shape=(3, 160, 160), data_type='FP32', data=None):
    count = 1
    for side in shape:
        count *= side
    size = {'FP32': 4, 'FP16': 2, 'BF16': 2, 'UINT8': 1}.get(data_type, 4)
    if data is None:
        data = bytes(count * size)
    return {'tensor': {'dataType': data_type, 'shape': [str(side) for side in shape],
                       'data': text(data)}}


NAN = struct.pack('<f', float('nan')) * (3 * 160 * 160)

IMAGES = [
    ('pixels', pixels()), ('no format', pixels(format=None)), ('no data', pixels(data=None)),
    ('stride', pixels(rowStrideBytes=24)), ('short stride', pixels(rowStrideBytes=23)),
    ('negative', pixels(width=-1)), ('too wide', pixels(width=20000)),
    ('NV12', pixels(format='NV12', data=text(bytes(72)))),
    ('NV12 odd', pixels(format='NV12', width=7)), ('GRAY8', pixels(format='GRAY8', data=text(bytes(48)))),
    ('BGRA8', pixels(format='BGRA8', data=text(bytes(192)))),
    ('crop', {**pixels(), 'crop': {'xMin': 0.25, 'xMax': 0.75}}),
    ('empty crop', {**pixels(), 'crop': {'xMin': 0.75, 'xMax': 0.25}}),
    ('crop outside', {**pixels(), 'crop': {'yMax': 1.5}}), ('nothing', {}),
    ('tensor', tensor()), ('tensor UINT8', tensor(data_type='UINT8')),
    ('tensor of another size', tensor((3, 161, 160))), ('tensor of two sides', tensor((160, 160))),
    ('tensor without data', tensor(data=b'')), ('tensor with NaN', tensor(data=NAN)),
    ('tensor with a crop', {**tensor(), 'crop': {'xMin': 0.5}}),
]

OPTIONS = [
    {'includeTiming': True}, {'allowPartialResults': True}, {'resize': 'STRETCH'},
    {'resize': 'LETTERBOX'}, {'resize': 'CENTER_CROP'}, {'validateOnly': True},
    {'priority': 'HIGH'}, {'priority': 'LOW'}, {'maxQueueWait': '5s'}, {'maxQueueWait': '-1s'},
]

PARAMS = {
    'Classify': [
        {'topK': 3}, {'topK': 20}, {'topK': 21}, {'topK': -1}, {'minScore': 0.1}, {'minScore': 2},
        {'scoreType': 'LOGIT'}, {'scoreType': 'SIGMOID'}, {'classFilter': [1, 2]},
        {'classFilter': [20]}, {'classFilter': [-1]}, {'includeEmbedding': True},
        {'heatMap': {}}, {'heatMap': {'classId': 3}}, {'heatMap': {'classId': 20}},
        {'heatMap': {'encoding': 'PNG'}},
    ],
    'Detect': [
        {'scoreThreshold': 0.5}, {'scoreThreshold': 0}, {'scoreThreshold': 1.5},
        {'nmsIouThreshold': 0.3}, {'nmsIouThreshold': -1}, {'maxDetections': 2},
        {'maxDetections': 1001}, {'classFilter': [1]}, {'classFilter': [99]},
        {'maskEncoding': 'COCO_RLE'}, {'maskEncoding': 'PNG_CROP'}, {'classAgnosticNms': True},
        {'tiles': {'width': 320, 'height': 320}}, {'tiles': {'width': 8, 'height': 8}},
        {'tiles': {'width': 320, 'height': 320, 'overlap': 0.95}},
        {'tiles': {'width': 320, 'height': 320, 'merge': 'GREEDY_NMM', 'match': 'IOS'}},
        {'tiles': {'width': 320, 'height': 320, 'withoutPicture': True}},
        {'crops': {}}, {'crops': {'model': 'everyday', 'topK': 2}},
        {'crops': {'model': 'everyday_segmenter'}}, {'crops': {'model': 'nothing'}},
        {'crops': {'margin': -1}},
    ],
    'Segment': [
        {'encoding': 'PNG_INDEX'}, {'encoding': 'RLE_PER_CLASS'}, {'encoding': 'RAW_INDEX'},
        {'outputSize': 'MODEL'}, {'outputSize': 'MODEL', 'encoding': 'RAW_INDEX'},
        {'includeClassAreas': True}, {'includeConfidenceMap': True}, {'classFilter': [2]},
        {'classFilter': [99]}, {'slide': {}}, {'slide': {'width': 64, 'height': 64}},
        {'slide': {'width': -1}}, {'slide': {'strideX': 1}},
    ],
}

NAMES = ['', 'everyday', 'models/everyday', 'models/everyday/versions/1',
         'models/everyday/labels/stable', 'models/everyday/versions/2', 'models/everyday/versions/01',
         'everydya', 'models/', 'a b', '../everyday', 'x' * 200]


def query(params):
    """Returns the parameters as a REST query, or None if a query cannot express them."""
    fields = []
    for name, value in params.items():
        name = ''.join('_' + c.lower() if c.isupper() else c for c in name)
        if isinstance(value, dict):
            for inner, of_it in value.items():
                inner = ''.join('_' + c.lower() if c.isupper() else c for c in inner)
                fields.append(f'{name}.{inner}={of_it}')
            if not value:
                return None
        elif isinstance(value, list):
            fields.append(f'{name}={",".join(map(str, value))}')
        else:
            fields.append(f'{name}={str(value).lower() if isinstance(value, bool) else value}')
    return '&'.join(fields)


def grpc(service, method, message, **more):
    return {'way': 'grpc', 'service': service, 'method': method, 'message': message, **more}


def http(method, target, body=b'', headers=()):
    return {'way': 'http', 'method': method, 'target': target, 'body': body,
            'headers': dict(headers)}


JSON = {'Content-Type': 'application/json'}
PROTOBUF = {'Accept': 'application/x-protobuf'}


def typed():
    """Yields predictions over gRPC. Also yields predictions over REST with the same messages."""
    picture = {'encoded': text(sample('render_01.jpg'))}
    scene = {'encoded': text(sample('scene_01.jpg'))}

    def both(verb, message):
        yield grpc(VISION, verb, {'model': MODELS[verb], **message})
        yield http('POST', f'/v1/models/{MODELS[verb]}:{VERBS[verb]}', json.dumps(message).encode(),
                   JSON)

    for verb, all_params in PARAMS.items():
        image = picture if verb == 'Classify' else scene
        for params in all_params:
            yield from both(verb, {'images': [image], 'params': params})
            by_query = query(params)
            if by_query is not None:
                yield http('POST', f'/v1/models/{MODELS[verb]}:{VERBS[verb]}?{by_query}',
                           base64.b64decode(image['encoded']))
        for options in OPTIONS:
            yield grpc(VISION, verb, {'model': MODELS[verb], 'images': [image], 'options': options})
    for _, image in IMAGES:
        yield from both('Classify', {'images': [image]})
    for _, data in pictures():
        yield grpc(VISION, 'Classify', {'model': 'everyday', 'images': [{'encoded': text(data)}]})
        yield http('POST', '/v1/models/everyday:classify', data)
    for images in ([], [picture] * 3, [picture, {}], [picture] * 65):
        yield from both('Classify', {'images': images})
        yield from both('Classify', {'images': images, 'options': {'allowPartialResults': True}})
    for name in NAMES:
        yield grpc(VISION, 'Classify', {'model': name, 'images': [picture]})
        yield grpc(VISION, 'GetModel', {'name': name})
    for verb, model in [('Classify', 'everyday_detector'), ('Detect', 'everyday'),
                        ('Segment', 'everyday')]:
        yield grpc(VISION, verb, {'model': model, 'images': [picture]})
        yield http('POST', f'/v1/models/{model}:{VERBS[verb]}', sample('render_01.jpg'))
    yield grpc(VISION, 'Classify', {'images': [picture], 'requestId': 'seven'})
    yield grpc(VISION, 'Classify', {'images': [picture], 'requestId': 'x' * 200})
    for message in ({}, {'pageSize': 1}, {'pageSize': -1}, {'pageToken': 'nothing'}):
        yield grpc(VISION, 'ListModels', message)
    for data in (b'\xff\xff', b'\x0a', b'\x12\x05hello', b'\x0a\x02\xff\xfe'):
        yield grpc(VISION, 'Classify', data)
        yield grpc(VISION, 'GetModel', data)
    yield grpc(VISION, 'Classify', {'images': [picture]}, timeout=0.0001)
    yield grpc(VISION, 'Nothing', b'')
    yield grpc('no.Service', 'Nothing', b'')


def rest():
    jpeg = sample('render_01.jpg')
    message = {'images': [{'encoded': text(jpeg)}]}
    classify = '/v1/models/everyday:classify'
    yield http('PUT', classify, jpeg)
    yield http('POST', classify, jpeg, PROTOBUF)
    for headers in ({'Content-Type': 'image/jpeg'}, {'X-Request-Timeout': '5'},
                    {'X-Request-Timeout': 'soon'}, {'grpc-timeout': '5S'}, {'grpc-timeout': 'x'},
                    {'Content-Encoding': 'br'}, {'Content-Encoding': 'gzip'},
                    {'Origin': 'http://elsewhere'}, {'Accept': 'text/html'},
                    {'Authorization': 'Bearer nothing'}, {'Expect': '100-continue'},
                    {'traceparent': '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01'}):
        yield http('POST', classify, jpeg, headers)
    for body in (b'', b'{', b'{}', b'[]', b'{"images": 1}', b'{"images": [{"encoded": "!"}]}',
                 b'{"nothing": 1}', b'{"images": [{}], "images": []}', b'null'):
        yield http('POST', classify, body, JSON)
    boundary = '----one'
    part = ('--{0}\r\nContent-Disposition: form-data; name="{1}"{2}\r\n\r\n')
    form = (part.format(boundary, 'image', '; filename="a.jpg"').encode() + jpeg + b'\r\n' +
            part.format(boundary, 'top_k', '').encode() + b'2\r\n' + f'--{boundary}--\r\n'.encode())
    multipart = {'Content-Type': f'multipart/form-data; boundary={boundary}'}
    yield http('POST', classify, form, multipart)
    yield http('POST', classify, form[:-20], multipart)
    yield http('POST', classify, form, {'Content-Type': 'multipart/form-data'})
    for target in ('/', '/v1', '/v1/models', '/v1/models?page_size=1', '/v1/models?page_size=x',
                   '/v1/models/everyday', '/v1/models/everyday/versions/1',
                   '/v1/models/everyday/versions/9', '/v1/models/nothing', '/v1/models/a%20b',
                   '/healthz', '/livez', '/readyz', '/openapi.json', '/nothing', '/v1/models/../x',
                   '/v2', '/v2/health/live', '/v2/health/ready', '/v2/models/everyday',
                   '/v2/models/everyday/ready', '/v2/models/nothing/ready',
                   '/v2/models/everyday/config', '/v2/models/everyday/versions/1',
                   '/v2/models/everyday/versions/2', '/v2/models/nothing', '/v2/repository/index'):
        for method in ('GET', 'HEAD', 'OPTIONS', 'POST', 'DELETE'):
            yield http(method, target, b'' if method != 'POST' else b'{}')
    for target in (f'{classify}?top_k=3', f'{classify}?top_k=x', f'{classify}?nothing=1',
                   f'{classify}?top_k=1&top_k=2', f'{classify}?class_filter=1,x',
                   '/v1/models/everyday/versions/1:classify', '/v1/models/everyday/versions/2:classify',
                   '/v1/models/nothing:classify', '/v1/models/everyday:nothing'):
        yield http('POST', target, jpeg)
    yield http('POST', classify, json.dumps({**message, 'model': 'everyday'}).encode(), JSON)
    yield http('POST', classify, json.dumps({**message, 'model': 'other'}).encode(), JSON)


def kserve():
    jpeg = sample('render_01.jpg')
    raw = struct.pack('<I', len(jpeg)) + jpeg
    zeros = bytes(4 * 3 * 160 * 160)
    bytes_input = {'name': 'image', 'datatype': 'BYTES', 'shape': ['1']}
    fp32 = {'name': 'image', 'datatype': 'FP32', 'shape': ['1', '3', '160', '160']}
    messages = [
        {'inputs': [bytes_input], 'rawInputContents': [text(raw)]},
        {'inputs': [{**bytes_input, 'contents': {'bytesContents': [text(jpeg)]}}]},
        {'inputs': [fp32], 'rawInputContents': [text(zeros)]},
        {'inputs': [fp32], 'rawInputContents': [text(zeros[4:])]},
        {'inputs': [fp32]}, {'inputs': []}, {},
        {'inputs': [{**fp32, 'shape': ['1', '3', '161', '160']}], 'rawInputContents': [text(zeros)]},
        {'inputs': [{**fp32, 'name': 'other'}], 'rawInputContents': [text(zeros)]},
        {'inputs': [{**fp32, 'datatype': 'INT64'}], 'rawInputContents': [text(zeros)]},
        {'inputs': [{**fp32, 'shape': ['-1', '3', '160', '160']}], 'rawInputContents': [text(zeros)]},
        {'inputs': [fp32, fp32], 'rawInputContents': [text(zeros)] * 2},
        {'inputs': [bytes_input], 'rawInputContents': [text(raw[:-1])]},
        {'inputs': [bytes_input], 'rawInputContents': [text(raw)], 'id': 'seven',
         'outputs': [{'name': 'logits', 'parameters': {'classification': {'int64Param': '2'}}}]},
        {'inputs': [bytes_input], 'rawInputContents': [text(raw)], 'outputs': [{'name': 'other'}]},
        {'inputs': [bytes_input], 'rawInputContents': [text(raw)],
         'parameters': {'priority': {'int64Param': '1'}, 'timeout': {'int64Param': '5000000'}}},
        {'inputs': [bytes_input], 'rawInputContents': [text(raw)],
         'parameters': {'nothing': {'boolParam': True}}},
        {'inputs': [{**fp32, 'parameters': {'shared_memory_region': {'stringParam': 'a'}}}]},
    ]
    for model in ('everyday', 'everyday_detector', 'everyday_segmenter', 'nothing'):
        for message in messages[:2] if model != 'everyday' else messages:
            yield grpc(KSERVE, 'ModelInfer', {'modelName': model, **message})
    yield grpc(KSERVE, 'ModelInfer', {'modelName': 'everyday', 'modelVersion': '2', **messages[0]})
    for method, all_messages in {
            'ServerLive': [{}], 'ServerReady': [{}], 'ServerMetadata': [{}],
            'ModelReady': [{'name': 'everyday'}, {'name': 'nothing'}, {}],
            'ModelMetadata': [{'name': 'everyday'}, {'name': 'everyday_detector'},
                              {'name': 'everyday', 'version': '2'}, {'name': 'nothing'}, {}],
            'ModelConfig': [{'name': 'everyday'}, {'name': 'nothing'}],
            'RepositoryIndex': [{}, {'ready': True}, {'repositoryName': 'other'}],
            'RepositoryModelLoad': [
                {'modelName': 'nothing'}, {},
                {'modelName': 'everyday', 'parameters': {'config': {'stringParam': '[]'}}}],
            'RepositoryModelUnload': [{'modelName': 'nothing'}],
            'SystemSharedMemoryStatus': [{}],
            'SystemSharedMemoryRegister': [{'name': 'a', 'key': '/a', 'byteSize': '4'}],
            'SystemSharedMemoryUnregister': [{}], 'CudaSharedMemoryStatus': [{}],
            'CudaSharedMemoryRegister': [{}], 'CudaSharedMemoryUnregister': [{}]}.items():
        for message in all_messages:
            yield grpc(KSERVE, method, message)
    yield http('POST', '/v2/repository/models/everyday/load',
               b'{"parameters": {"config": "[]"}}', JSON)
    for kind in ('system', 'cuda'):
        yield http('GET', f'/v2/{kind}sharedmemory/status')
        yield http('GET', f'/v2/{kind}sharedmemory/region/a/status')
        yield http('POST', f'/v2/{kind}sharedmemory/region/a/register',
                   b'{"key": "/a", "byte_size": 4}', JSON)
        yield http('POST', f'/v2/{kind}sharedmemory/unregister', b'{}', JSON)
    infer = '/v2/models/everyday/infer'
    head = json.dumps({'inputs': [{'name': 'image', 'datatype': 'BYTES', 'shape': [1],
                                   'parameters': {'binary_data_size': len(raw)}}]}).encode()
    for target in (infer, '/v2/models/everyday_detector/infer', '/v2/models/nothing/infer',
                   '/v2/models/everyday/versions/1/infer', '/v2/models/everyday/versions/2/infer'):
        yield http('POST', target, head + raw,
                   {'Inference-Header-Content-Length': str(len(head))})
    for headers in ({'Inference-Header-Content-Length': '0'},
                    {'Inference-Header-Content-Length': 'x'},
                    {'Inference-Header-Content-Length': '999999'}, {}):
        yield http('POST', infer, head + raw, headers)
    yield http('POST', infer, jpeg, {'Inference-Header-Content-Length': '0'})
    for tensor_json in (
            {'name': 'image', 'datatype': 'FP32', 'shape': [1, 3, 160, 160], 'data': [0] * 76800},
            {'name': 'image', 'datatype': 'FP32', 'shape': [1, 3, 160, 160], 'data': [0] * 9},
            {'name': 'image', 'datatype': 'FP32', 'shape': [1, 3, 160, 160], 'data': ['x']},
            {'name': 'image', 'datatype': 'FP32', 'shape': [1, 3, 160, 160]}):
        for extra in ({}, {'parameters': {'binary_data_output': True}}, {'id': 'seven'}):
            yield http('POST', infer, json.dumps({'inputs': [tensor_json], **extra}).encode(), JSON)
    for path in sorted((CORPUS / 'kserve_rest').iterdir()):
        yield http('POST', infer, path.read_bytes(), JSON)
    for path in sorted((CORPUS / 'kserve').iterdir()):
        yield grpc(KSERVE, 'ModelInfer', path.read_bytes())


def corpora():
    for path in sorted((CORPUS / 'request').iterdir()):
        for verb in MODELS:
            yield grpc(VISION, verb, path.read_bytes())
    for path in sorted((CORPUS / 'rest_request').iterdir()):
        yield http('POST', '/v1/models/everyday:classify', path.read_bytes(), JSON)
    for path in sorted((CORPUS / 'http_request').iterdir()):
        yield {'way': 'raw', 'bytes': path.read_bytes()}
    for data in (b'GET / HTTP/1.1\r\n\r\n', b'GET / HTTP/9.9\r\nHost: a\r\n\r\n', b'nonsense\r\n\r\n',
                 b'GET /healthz HTTP/1.0\r\n\r\n', b'POST / HTTP/1.1\r\nHost: a\r\n'
                 b'Content-Length: x\r\n\r\n', b'GET /healthz HTTP/1.1\r\nHost: a\r\nA: ' +
                 b'x' * 20000 + b'\r\n\r\n', b'POST / HTTP/1.1\r\nHost: a\r\n'
                 b'Transfer-Encoding: gzip\r\n\r\n'):
        yield {'way': 'raw', 'bytes': data}


def streams():
    picture = {'encoded': text(sample('render_01.jpg'))}
    classify = {'correlationId': '1', 'classify': {'model': 'everyday', 'images': [picture]}}
    detect = {'correlationId': '2', 'detect': {'model': 'everyday_detector', 'images': [picture]}}
    config = {'config': {'maxInFlight': 1, 'preserveOrder': True}}
    for messages in ([], [classify], [config, classify, detect], [config, config],
                     [{'config': {'maxInFlight': 100}}], [config, classify, classify],
                     [config, {}], [config, {**classify, 'correlationId': ''}],
                     [config, {'correlationId': '3', 'classify': {'model': 'nothing'}}],
                     [classify, b'\xff']):
        yield {'way': 'stream', 'service': VISION, 'method': 'StreamPredict', 'messages': messages}
    infer = {'modelName': 'everyday', 'id': 'one',
             'inputs': [{'name': 'image', 'datatype': 'BYTES', 'shape': ['1'],
                         'contents': {'bytesContents': [picture['encoded']]}}]}
    for messages in ([], [infer], [{**infer, 'modelName': 'nothing'}], [{}], [b'\xff']):
        yield {'way': 'stream', 'service': KSERVE, 'method': 'ModelStreamInfer',
               'messages': messages}


def operators():
    for service in ('', VISION, KSERVE, 'models/everyday', 'liveness', 'nothing'):
        yield grpc(HEALTH, 'Check', {'service': service})
    for method, all_messages in {
            'GetServerInfo': [{}], 'GetBatchProfile': [{'name': 'nothing'}, {}],
            'SetVersionLabel': [{'model': 'everyday', 'label': 'x', 'version': '1'},
                                {'model': 'everyday', 'label': 'x', 'version': '2'},
                                {'model': 'everyday', 'label': 'a b', 'version': '1'},
                                {'model': 'nothing', 'label': 'x', 'version': '1'}],
            'SetCanaryShare': [{}],
            'LoadModel': [{'name': 'everyday'}, {'name': 'nothing'}, {}],
            'UnloadModel': [{'name': 'nothing'}, {}],
            'UpdateRuntimeSettings': [{}]}.items():
        for message in all_messages:
            yield grpc(ADMIN, method, message)


def all_cases():
    for group in (typed, rest, kserve, corpora, streams, operators):
        yield from group()
