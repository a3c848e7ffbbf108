"""Checks the OpenAPI description of REST with OpenAPI's own schema."""

import json
import pathlib
import subprocess
import unittest

import jsonschema

SCHEMA = pathlib.Path('external/schemas/openapi-3.0.json')


class OpenApiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        text = subprocess.run(['tests/server/rest/write_open_api'], check=True,
                              stdout=subprocess.PIPE).stdout
        cls.document = json.loads(text)

    def test_is_valid(self):
        schema = json.loads(SCHEMA.read_text())
        jsonschema.Draft4Validator(schema).validate(self.document)

    def test_references_lead_somewhere(self):
        def references(value):
            if isinstance(value, dict):
                if '$ref' in value:
                    yield value['$ref']
                value = value.values()
            if not isinstance(value, str) and hasattr(value, '__iter__'):
                for one in value:
                    yield from references(one)

        found = set(references(self.document))
        self.assertIn('#/components/schemas/ClassifyRequest', found)
        for reference in found:
            place = self.document
            for key in reference.split('/')[1:]:
                place = place[key]
            self.assertEqual(place['type'], 'object')
        self.assertEqual(len(found), len(self.document['components']['schemas']))

    def test_describes_the_api(self):
        self.assertEqual(self.document['info']['version'], '1.2')
        operations = [operation for path in self.document['paths'].values()
                      for operation in path.values()]
        names = [operation['operationId'] for operation in operations]
        self.assertEqual(len(set(names)), len(names))
        for name in ('listModels', 'getModel', 'classify', 'detectVersion', 'readyz'):
            self.assertIn(name, names)
        detect = self.document['paths']['/v1/models/{model}:detect']['post']
        self.assertIn('Boxes', detect['description'])
        parameters = {one['name']: one for one in detect['parameters']}
        self.assertTrue(parameters['model']['required'])
        self.assertIn('COCO_RLE', parameters['mask_encoding']['schema']['enum'])
        self.assertIn('crop.x_max', parameters)
        # In all queries of this server, a list is one parameter with elements separated by commas.
        self.assertIs(parameters['class_filter']['explode'], False)
        self.assertNotIn('explode', parameters['mask_encoding'])
        self.assertNotIn('params', parameters)
        self.assertIn('pattern', parameters['max_queue_wait']['schema'])
        self.assertNotIn('max_queue_wait.seconds', parameters)
        detection = self.document['components']['schemas']['Detection']['properties']
        self.assertEqual(detection['pngCrop']['format'], 'byte')
        self.assertEqual(detection['classId'], {'type': 'integer', 'format': 'int32'})


if __name__ == '__main__':
    unittest.main()
