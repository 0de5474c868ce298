// GitHub's own evaluator of expressions, a line of JSON in and out:
//   {"expression": "needs.a.result == 'success'", "contexts": {"needs": …}, "status": "success",
//    "files": {"pattern": "hash"}}    →    {"value": …, "text": "…", "true": …} or {"error": "…"}
// `status` is what always(), success(), failure() and cancelled() answer by; `files` what hashFiles() does.
import { createInterface } from "node:readline";
import { data, Evaluator, Lexer, Parser } from "@actions/expressions";
import { truthy } from "@actions/expressions/result";

const STATUSES = {
  always: () => true,
  success: (status) => status === "success",
  failure: (status) => status === "failure",
  cancelled: (status) => status === "cancelled",
};

function answer({ expression, contexts, status, files }) {
  const functions = Object.entries(STATUSES).map(([name, holds]) => ({
    name, minArgs: 0, maxArgs: 0, call: () => new data.BooleanData(holds(status)),
  }));
  functions.push({
    name: "hashFiles", minArgs: 1, maxArgs: 255,
    call: (...patterns) => new data.StringData(
      patterns.map((one) => files?.[one.coerceString()] ?? "").join("")),
  });
  const tokens = new Lexer(expression).lex().tokens;
  const tree = new Parser(tokens, Object.keys(contexts), functions).parse();
  const known = JSON.parse(JSON.stringify(contexts), data.reviver);
  const byName = new Map(functions.map((one) => [one.name.toLowerCase(), one]));
  const value = new Evaluator(tree, known, byName).evaluate();
  return {
    value: JSON.parse(JSON.stringify(value, data.replacer)),
    text: value.coerceString(),
    true: truthy(value),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  let said;
  try {
    said = answer(JSON.parse(line));
  } catch (error) {
    said = { error: String(error?.message ?? error) };
  }
  console.log(JSON.stringify(said));
}
