"""Drives a headless Chromium over the DevTools protocol. Needs only the standard library."""

import base64
import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time

PROGRAM = 'chromium-headless-shell'  # From Debian's package of the same name.
PATIENCE = 60  # The time limit of each wait, in seconds. The machine may be busy.


def is_installed():
    return shutil.which(PROGRAM) is not None


class Browser:
    """Runs one browser with one page, until close(). Not thread-safe.

    `events` are all events of the page that the browser has sent, each as (method, parameters).
    """

    def __init__(self, width=1280, height=900):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()

        def give_pipes():  # The browser reads from descriptor 3 and writes to 4.
            # Moves both descriptors to numbers above 4 first, because each may have the number that
            # the other one needs.
            source, target = os.dup(commands), os.dup(answers)
            while source in (3, 4):
                source = os.dup(source)
            while target in (3, 4):
                target = os.dup(target)
            os.dup2(source, 3)
            os.dup2(target, 4)

        # Chromium's sandbox cannot start as root in a container. It is not needed, because all
        # pages here are our own.
        self._process = subprocess.Popen(
            [PROGRAM, '--no-sandbox', '--remote-debugging-pipe', '--disable-gpu',
             '--force-color-profile=srgb', '--hide-scrollbars', '--no-first-run',
             f'--user-data-dir={self._profile.name}', f'--window-size={width},{height}',
             'about:blank'],
            preexec_fn=give_pipes, pass_fds=(3, 4), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.events = []
        self._messages = queue.Queue()
        self._reader = threading.Thread(target=self._receive)
        self._reader.start()
        self._last_id = 0
        self._session = None
        target = next(target for target in self.call('Target.getTargets')['targetInfos']
                      if target['type'] == 'page')
        self._session = self.call('Target.attachToTarget', targetId=target['targetId'],
                                  flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Network', 'Log', 'DOM'):
            self.call(f'{domain}.enable')
        self.resize(width, height)

    def close(self):
        # The browser is a group of processes, and each of them may hold the pipes open.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        os.close(self._read)
        os.close(self._write)
        self._profile.cleanup()

    def _receive(self):
        """Queues every message from the browser. A NUL ends each message. Queues None at the end of
        the input.
        """
        rest = b''
        while piece := os.read(self._read, 1 << 16):
            *messages, rest = (rest + piece).split(b'\0')
            for message in messages:
                self._messages.put(json.loads(message))
        self._messages.put(None)

    def _next(self, deadline):
        """Handles one message from the browser. Returns False if none arrives before the deadline.
        """
        try:
            message = self._messages.get(timeout=max(0, deadline - time.monotonic()))
        except queue.Empty:
            return False
        if message is None:
            raise RuntimeError(f'{PROGRAM} has ended with {self._process.poll()}')
        if 'method' in message:
            self.events.append((message['method'], message['params']))
        return message

    def call(self, method, **parameters):
        """Calls a method of the protocol and returns its result. Raises RuntimeError if it fails.
        """
        self._last_id += 1
        command = {'id': self._last_id, 'method': method, 'params': parameters}
        if self._session:
            command['sessionId'] = self._session
        data = json.dumps(command).encode() + b'\0'
        while data:
            data = data[os.write(self._write, data):]
        deadline = time.monotonic() + PATIENCE
        while message := self._next(deadline):
            if message.get('id') == self._last_id:
                if 'error' in message:
                    raise RuntimeError(f'{method}: {message["error"]}')
                return message['result']
        raise TimeoutError(f'no answer to {method}')

    def evaluate(self, expression):
        """Evaluates the expression in the page, awaits promises, and returns the value."""
        answer = self.call('Runtime.evaluate', expression=expression, awaitPromise=True,
                           returnByValue=True, userGesture=True)
        if 'exceptionDetails' in answer:
            raise RuntimeError(f'{expression}: {json.dumps(answer["exceptionDetails"])[:2000]}')
        return answer['result'].get('value')

    def wait_for(self, expression, patience=PATIENCE):
        """Waits until the expression is true in the page, and returns its value."""
        deadline = time.monotonic() + patience
        while not (value := self.evaluate(expression)):
            if time.monotonic() > deadline:
                text = self.evaluate('document.body.innerText')
                raise TimeoutError(f'never true: {expression}; the page says: {text}')
            self._next(min(deadline, time.monotonic() + 0.05))
        return value

    def open(self, url):
        self.call('Page.navigate', url=url)
        self.wait_for('document.readyState === "complete" && location.href !== "about:blank"')

    def resize(self, width, height, scale=1):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height,
                  deviceScaleFactor=scale, mobile=False)

    def set_dark(self, dark):
        self.call('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])

    def reduce_motion(self):
        self.call('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-reduced-motion', 'value': 'reduce'}])

    def press(self, key, text='', shift=False):
        """Presses a key, such as 'Tab', 'Enter', 'ArrowDown' or ' '."""
        codes = {'Tab': 9, 'Enter': 13, ' ': 32, 'ArrowLeft': 37, 'ArrowRight': 39,
                 'ArrowUp': 38, 'ArrowDown': 40}
        text = text or {'Enter': '\r', ' ': ' '}.get(key, '')
        common = {'key': key, 'code': 'Space' if key == ' ' else key,
                  'windowsVirtualKeyCode': codes[key], 'modifiers': 8 if shift else 0}
        self.call('Input.dispatchKeyEvent', type='keyDown' if text else 'rawKeyDown', text=text,
                  **common)
        self.call('Input.dispatchKeyEvent', type='keyUp', **common)

    def type(self, text):
        """Enters text into the field that has the focus, like an input method."""
        self.call('Input.insertText', text=text)

    def choose_file(self, selector, path):
        """Chooses a file, like a user of a file dialog."""
        root = self.call('DOM.getDocument')['root']['nodeId']
        node = self.call('DOM.querySelector', nodeId=root, selector=selector)['nodeId']
        self.call('DOM.setFileInputFiles', nodeId=node, files=[str(path)])

    def screenshot(self, whole=False):
        """Returns a PNG of the visible part of the page, or of the whole page."""
        return base64.b64decode(self.call('Page.captureScreenshot', format='png',
                                          captureBeyondViewport=whole)['data'])

    def complaints(self):
        """Returns the texts of all errors of the page: from scripts, the network and security
        policies.
        """
        self.evaluate('1')  # Earlier messages have arrived by now.
        texts = []
        for method, parameters in self.events:
            if method == 'Runtime.exceptionThrown':
                texts.append(json.dumps(parameters['exceptionDetails'])[:500])
            if method == 'Runtime.consoleAPICalled' and parameters['type'] in ('error', 'assert'):
                texts.append(json.dumps(parameters['args'])[:500])
            if method == 'Log.entryAdded' and parameters['entry']['level'] == 'error':
                texts.append(parameters['entry']['text'] + ' ' + parameters['entry'].get('url', ''))
        return texts

    def requests(self):
        """Returns the address of every request that the page has sent."""
        return [parameters['request']['url'] for method, parameters in self.events
                if method == 'Network.requestWillBeSent']
