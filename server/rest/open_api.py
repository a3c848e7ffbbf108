"""Writes C++ with the OpenAPI description of REST: open_api.py PROTO_SET > open_api_text.h.

PROTO_SET is a file that protoc has written. It holds the FileDescriptorSet of vision.proto and its
imports, including the comments. The description is OpenAPI 3.0.3 in JSON and contains the methods
of the typed API, their messages and the probes. The messages are in protobuf's JSON mapping and
have the comments of the proto files. The description contains a placeholder for the path of each
method, such as "@GetModel@". The placeholder "@GetModel.version@" is for the path with a model
version. The C++ function OpenApi() replaces the placeholders.
"""

import dataclasses
import json
import pathlib
import sys

PACKAGE = 'sfmamba.v1.'
ABOUT = ('Asks vision models about pictures. Beside it the server speaks the Open Inference '
         'Protocol under /v2, and gRPC at another port.')
VERSION = '@VERSION@'  # OpenApi() replaces this with the server's version.

# Values of the enums Type and Label in google/protobuf/descriptor.proto.
MESSAGE, ENUM, BYTES = 11, 14, 12
REPEATED = 3
TYPES = {2: ('number', 'float'), 3: ('string', 'int64'), 5: ('integer', 'int32'),
         8: ('boolean',), 9: ('string',), BYTES: ('string', 'byte')}
WELL_KNOWN = {
    'google.protobuf.Timestamp': {'type': 'string', 'format': 'date-time'},
    'google.protobuf.Duration': {'type': 'string', 'pattern': r'^-?[0-9]+(\.[0-9]+)?s$'},
    'google.protobuf.Any': {'type': 'object', 'properties': {'@type': {'type': 'string'}},
                            'additionalProperties': True},
}
DURATION = 'google.protobuf.Duration'


class Wire(dict):
    """A parsed protobuf message, which maps each field number to a list of values."""

    def __init__(self, data):
        super().__init__()
        at = 0

        def varint():
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value

        while at < len(data):
            tag = varint()
            value = varint()
            if tag & 7 == 2:  # Length-delimited. Descriptors have no fixed-size numbers.
                value, at = data[at:at + value], at + value
            self.setdefault(tag >> 3, []).append(value)

    def messages(self, number):
        return [Wire(value) for value in self.get(number, [])]

    def text(self, number):
        return self.get(number, [b''])[0].decode()

    def number(self, number):
        return self.get(number, [0])[0]


@dataclasses.dataclass
class Field:
    name: str
    json_name: str
    type: int
    type_name: str  # Empty unless the field is a message or an enum.
    is_list: bool
    in_oneof: bool
    comment: str

    @property
    def is_duration(self):
        return self.type_name == DURATION

    @property
    def is_settable(self):
        """True if a query parameter can set the field. Must agree with query_fields.cc."""
        return self.type != BYTES and (self.type != MESSAGE or self.is_duration)

    @property
    def has_parameters(self):
        return (self.type == MESSAGE and not self.is_list and not self.in_oneof and
                not self.is_duration)


class Protos:
    """The comments and fields of all messages, the values of enums and the comments of methods."""

    def __init__(self, data):
        self.messages, self.enums, self.methods = {}, {}, {}
        for file in Wire(data).messages(1):
            self._comments = {tuple(place.get(1, [b''])[0]): (place.text(3) + place.text(4))
                              for source in file.messages(9) for place in source.messages(1)}
            package = file.text(2) + '.'
            for i, message in enumerate(file.messages(4)):
                self._add_message(package, message, (4, i))
            for enum in file.messages(5):
                self._add_enum(package, enum)
            for i, service in enumerate(file.messages(6)):
                for j, method in enumerate(service.messages(2)):
                    self.methods[method.text(1)] = self._comment(6, i, 2, j)

    def _comment(self, *path):
        return self._comments.get(path, '').strip().replace('\n ', '\n')

    def _add_enum(self, prefix, enum):
        self.enums[prefix + enum.text(1)] = [value.text(1) for value in enum.messages(2)]

    def _add_message(self, prefix, message, path):
        name = prefix + message.text(1)
        fields = [Field(field.text(1), field.text(10), field.number(5), field.text(6)[1:],
                        field.number(4) == REPEATED, 9 in field, self._comment(*path, 2, i))
                  for i, field in enumerate(message.messages(2))]
        self.messages[name] = self._comment(*path), fields
        for i, inner in enumerate(message.messages(3)):
            self._add_message(name + '.', inner, (*path, 3, i))
        for enum in message.messages(4):
            self._add_enum(name + '.', enum)


def commented(comment, schema):
    return {**schema, 'description': comment} if comment else schema


def content(kind, schema):
    return {kind: {'schema': schema}}


def response(description, answer):
    return {'description': description, 'content': answer}


def parameter(name, place, schema):
    required = {'required': True} if place == 'path' else {}
    return {'name': name, 'in': place, 'schema': schema, **required}


class Writer:
    def __init__(self, protos):
        self._protos = protos
        self._schemas = {}
        self._unwritten = []

    def _message(self, full_name):
        """Returns a reference to a message's schema."""
        if full_name in WELL_KNOWN:
            return WELL_KNOWN[full_name]
        name = full_name.removeprefix(PACKAGE)
        if name not in self._schemas:
            self._schemas[name] = {}
            self._unwritten.append(full_name)
        return {'$ref': f'#/components/schemas/{name}'}

    def _value(self, field):
        if field.type == MESSAGE:
            return self._message(field.type_name)
        if field.type == ENUM:
            return {'type': 'string', 'enum': self._protos.enums[field.type_name]}
        return dict(zip(('type', 'format'), TYPES[field.type]))

    def _field(self, field):
        schema = self._value(field)
        if field.is_list:
            schema = {'type': 'array', 'items': schema}
        # In a schema with a "$ref", OpenAPI ignores all other members, so a comment has no effect.
        return schema if '$ref' in schema else commented(field.comment, schema)

    def schemas(self):
        """Returns the schemas of all messages that the paths refer to."""
        while self._unwritten:
            full_name = self._unwritten.pop()
            comment, fields = self._protos.messages[full_name]
            properties = {field.json_name: self._field(field) for field in fields}
            self._schemas[full_name.removeprefix(PACKAGE)] = commented(
                comment, {'type': 'object', 'properties': properties})
        return self._schemas

    def _settable(self, full_name, prefix, types):
        for field in self._protos.messages[full_name][1]:
            if field.is_settable:
                yield prefix + field.name, field
            elif field.has_parameters and field.type_name not in types:
                yield from self._settable(field.type_name, f'{prefix}{field.name}.', types)

    def _query(self, *messages):
        types = [PACKAGE + message for message in messages]
        parameters = []
        for name, field in [one for type_ in types for one in self._settable(type_, '', types)]:
            if name == 'model':
                continue  # The field `model` is set from the path.
            one = parameter(name, 'query', self._field(field))
            parameters.append({**one, 'explode': False} if field.is_list else one)
        return parameters

    def _operation(self, method, name, parameters, answer):
        error = self._message('google.rpc.Status')
        return commented(self._protos.methods[method], {
            'operationId': name,
            'parameters': parameters,
            'responses': {
                '200': response('The answer.',
                                content('application/json', self._message(PACKAGE + answer))),
                'default': response('The error.', content('application/json', error))}})

    def _predict(self, method, name, parameters):
        query = self._query(f'{method}Request', f'{method}Params', 'RequestOptions', 'Image')
        operation = self._operation(method, name, parameters + query, f'{method}Response')
        binary = {'type': 'string', 'format': 'binary'}
        form = {'type': 'object', 'required': ['image'],
                'properties': {'image': {'type': 'array', 'items': binary}}}
        operation['requestBody'] = {
            'description': 'Pictures, whose parameters are in the query; or a message, which has '
                           'them in itself.',
            'required': True,
            'content': {
                **content('image/*', binary),
                **content('application/octet-stream', binary),
                **content('multipart/form-data', form),
                **content('application/json', self._message(f'{PACKAGE}{method}Request')),
                **content('application/x-protobuf', binary)}}
        return operation

    def paths(self):
        paths = {}
        for path in ('/healthz', '/livez', '/readyz', '/metrics'):
            text = content('text/plain', {'type': 'string'})
            responses = {'200': response('It is well.', text)}
            if path != '/metrics':
                responses['503'] = response('It is not.', text)
            paths[path] = {'get': {'operationId': path[1:], 'responses': responses}}
        paths['@ListModels@'] = {'get': self._operation(
            'ListModels', 'listModels', self._query('ListModelsRequest'), 'ListModelsResponse')}
        model = parameter('model', 'path', {'type': 'string'})
        version = parameter('version', 'path', {'type': 'integer'})
        for suffix, end, parameters in (('', '', [model]),
                                        ('.version', 'Version', [model, version])):
            paths[f'@GetModel{suffix}@'] = {
                'get': self._operation('GetModel', f'getModel{end}', parameters, 'Model')}
            for method in ('Classify', 'Detect', 'Segment'):
                name = method.lower() + end
                paths[f'@{method}{suffix}@'] = {'post': self._predict(method, name, parameters)}
        return paths


def describe(protos):
    writer = Writer(protos)
    return {
        'openapi': '3.0.3',
        'info': {'title': 'SF-Mamba vision server', 'description': ABOUT, 'version': VERSION},
        'paths': writer.paths(),
        'components': {'schemas': writer.schemas(),
                       'securitySchemes': {'token': {'type': 'http', 'scheme': 'bearer'}}},
        # Clients send a token. If the server has no tokens, clients need not send any.
        'security': [{'token': []}, {}]}


def main():
    protos = Protos(pathlib.Path(sys.argv[1]).read_bytes())
    text = json.dumps(describe(protos), indent=1, ensure_ascii=False)
    print('#include "absl/strings/string_view.h"\n\nnamespace sfmamba::rest {\n')
    print(f'inline constexpr absl::string_view kOpenApiText = R"json({text})json";\n')
    print('}  // namespace sfmamba::rest')


if __name__ == '__main__':
    main()
