// Shows the last request as commands for a shell and for Python.

import {mediaType, parseName, runUrl} from './api.js';
import {make} from './dom.js';
import {token} from './token.js';

// Returns the request parameters that let the server cut a picture into square tiles. They
// also ask it to merge the boxes of one object, which come from several tiles, into one
// box that encloses them. `side` is the width of a tile in pixels, or "auto" to let the
// server choose the size.
export function tileParameters(side) {
  const size = side === 'auto' ? {} : {'tiles.width': side, 'tiles.height': side};
  return {...size, 'tiles.merge': 'GREEDY_NMM', 'tiles.match': 'IOS'};
}

// Quotes the text, if necessary, so that a POSIX shell reads it as one word.
export function shellQuote(text) {
  return /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

// Returns the text as a string literal of Python. JSON's string literals are also valid in
// Python.
const pythonQuote = (text) => JSON.stringify(text);

// Puts "./" before a file name that a program could take for an option.
const fileName = (name) => /^[-@]/.test(name) ? `./${name}` : name;

// By default, the gRPC port is the port after this page's port.
function grpcAddress(location) {
  return `${location.hostname}:${location.port ? Number(location.port) + 1 : 8001}`;
}

// Returns the parts of the commands that depend on TLS and on the token. The
// commands contain the name of an environment variable instead of the token itself.
function accessFor(location) {
  const [tls, locked] = [location.protocol === 'https:', Boolean(token())];
  return {
    curl: locked ? '-H "Authorization: Bearer $SFMAMBA_TOKEN" ' : '',
    imports: locked ? 'import os\n' : '',
    python: `${tls ? ', tls=True' : ''}${locked ? ", token=os.environ['SFMAMBA_TOKEN']" : ''}`,
    flags: tls ? ' --tls' : '',
  };
}

// Returns the commands that send the request `asked` again, as pairs of a title and a text.
// `asked` is {target, picture, name, sample, options}. `options` may contain topK, heatMap,
// scoreThreshold, tiles and crops.
export function commandsFor(asked, base, location) {
  const {target, picture, sample, options} = asked;
  const {id, version} = parseName(target.name);
  const model = target.versioned ? target.name : id;
  const file = fileName(asked.name);
  const server = grpcAddress(location);
  const access = accessFor(location);
  const parameters = {};
  const flags = [];
  const keywords = [`model=${pythonQuote(model)}`];
  if (options.topK) {
    parameters.top_k = options.topK;
    flags.push(`--top_k=${options.topK}`);
    keywords.push(`top_k=${options.topK}`);
  }
  if (options.heatMap) {
    parameters['heat_map.encoding'] = 'PNG';
    flags.push('--heat_map --output_dir=.');
    keywords.push(`heat_map="best"`);
  }
  if (options.scoreThreshold !== undefined) {
    parameters.score_threshold = options.scoreThreshold;
    parameters.mask_encoding = 'COCO_RLE';
    flags.push(`--score_threshold=${options.scoreThreshold}`);
    keywords.push(`score_threshold=${options.scoreThreshold}`);
  }
  if (options.crops) {
    parameters['crops.model'] = options.crops;
    flags.push(`--crops_model=${options.crops}`);
    keywords.push(`crops=sfmamba.Crops(${pythonQuote(options.crops)})`);
  }
  if (options.tiles) {
    Object.assign(parameters, tileParameters(options.tiles));
    const [size, sides] = options.tiles === 'auto' ? ['auto', ''] :
        [`${options.tiles}x${options.tiles}`, `${options.tiles}, ${options.tiles}, `];
    flags.push(`--tiles=${size} --tile_merge=greedy_nmm --tile_match=ios`);
    keywords.push(`tiles=sfmamba.Tiles(${sides}merge='GREEDY_NMM', match='IOS')`);
  }
  if (target.method === 'segment') {
    parameters.encoding = 'RLE_PER_CLASS';
    parameters.include_class_areas = true;
  }
  parameters.include_timing = true;
  const fetched = sample ? `curl -sSo ${shellQuote(file)} ` +
      `${shellQuote(new URL(`console/${sample}`, base).href)}\n` : '';
  const url = new URL(runUrl(target, parameters), base).href;
  return [
    ['curl', `${fetched}curl -sS ${access.curl}-H 'Content-Type: ${mediaType(picture)}' ` +
        `-H 'X-Request-Timeout: 30' \\\n  --data-binary ${shellQuote(`@${file}`)} \\\n` +
        `  ${shellQuote(url)}`],
    ['Python', `${access.imports}import sfmamba\nwith sfmamba.Client(${pythonQuote(server)}${access.python}) as client:\n` +
        `    print(client.${target.method}(${pythonQuote(file)}, ${keywords.join(', ')}))`],
    ['sfmamba', `bazel-bin/client/sfmamba ${target.method} ${shellQuote(file)} \\\n` +
        `  --server=${shellQuote(server)}${access.flags} --model=${shellQuote(model)} ` +
        `${[...flags, '--timing'].join(' ')}`],
  ];
}

// Returns an element for each command, with a button that copies the command. After the
// copy, the button calls `copied` with a message for the user.
export function renderCommands(commands, copied) {
  return commands.map(([name, text]) => {
    const code = make('pre', {tabindex: 0, 'aria-label': `${name} command`}, make('code', {}, text));
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(text);
        copied(`The ${name} command was copied.`);
      } catch {
        // A page without TLS may not write to the clipboard, so the user copies the text.
        getSelection().selectAllChildren(code);
        copied(`The ${name} command is selected; copy it with Ctrl-C.`);
      }
    };
    return make('div', {class: 'command'},
        make('div', {class: 'row spread'}, make('h3', {}, name),
            make('button', {type: 'button', onclick: copy, 'aria-label': `Copy the ${name} command`},
                'Copy')),
        code);
  });
}
