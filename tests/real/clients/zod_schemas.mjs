// Writes the schemas of every type that zod has, with values, for test_zod_schemas.py: one JSON document on stdout.

import { z } from "zod";

const category = z.object({ name: z.string(), get children() { return z.array(category); } });
const UUID = "f47ac10b-58cc-4372-a567-0e02b2c3d479";

// Type, values that fit it, values that do not.
const types = {
  any: [z.any(), [1, "a", null], []],
  unknown: [z.unknown(), [1, "a", null], []],
  never: [z.never(), [], [1]],
  null: [z.null(), [null], [1]],
  boolean: [z.boolean(), [true], ["x"]],
  number: [z.number(), [1.5], ["x"]],
  "number bounds": [z.number().gt(1).lte(5).multipleOf(2), [2], [1, 6, 3]],
  "number positive": [z.number().positive(), [1], [0]],
  "number negative": [z.number().negative(), [-1], [0]],
  "number nonnegative": [z.number().nonnegative(), [0], [-1]],
  "number nonpositive": [z.number().nonpositive(), [0], [1]],
  int: [z.int(), [5], [1.5]],
  int32: [z.int32(), [5], [1.5, 2 ** 40]],
  uint32: [z.uint32(), [5], [-1]],
  float32: [z.float32(), [1.5], ["x"]],
  float64: [z.float64(), [1.5], ["x"]],
  string: [z.string(), ["a"], [1]],
  "string bounds": [z.string().min(2).max(3), ["ab"], ["a", "abcd"]],
  "string length": [z.string().length(2), ["ab"], ["a"]],
  "string regex": [z.string().regex(/^(?=.*\d)(?=.*[a-z]).{4,}$/), ["abc1"], ["abcd", "a1"]],
  "string back-reference": [z.string().regex(/^(.)\1$/), ["aa"], ["ab"]],
  "string look-behind": [z.string().regex(/(?<=\$)\d+/), ["$5"], ["5"]],
  "string named group": [z.string().regex(/^(?<year>\d{4})$/), ["2020"], ["x"]],
  "string flags": [z.string().regex(/^abc$/i), [], []],
  "string two patterns": [z.string().regex(/^a/).regex(/b$/), ["ab"], ["ac", "cb"]],
  "string startsWith": [z.string().startsWith("a.b"), ["a.bc"], ["axbc"]],
  "string endsWith": [z.string().endsWith("(z)"), ["a(z)"], ["az"]],
  "string includes": [z.string().includes("[x]"), ["a[x]b"], ["axb"]],
  "string lowercase": [z.string().lowercase(), ["a"], ["A"]],
  "string uppercase": [z.string().uppercase(), ["A"], ["a"]],
  email: [z.email(), ["a@b.co", "john.doe+tag@sub.example.com"], [".a@b.co", "a..b@c.de", "a@b", "hello"]],
  "email html5": [z.email({ pattern: z.regexes.html5Email }), ["a@b.co"], ["hello"]],
  "email rfc5322": [z.email({ pattern: z.regexes.rfc5322Email }), ["a@b.co"], ["hello"]],
  "email unicode": [z.email({ pattern: z.regexes.unicodeEmail }), ["a@b.co"], ["hello"]],
  uuid: [z.uuid(), [UUID], ["x"]],
  uuidv4: [z.uuidv4(), [UUID], ["x"]],
  uuidv6: [z.uuidv6(), [], ["x"]],
  uuidv7: [z.uuidv7(), [], ["x"]],
  guid: [z.guid(), [UUID], ["x"]],
  url: [z.url(), ["https://example.com/"], []],
  "url bounds": [z.url({ protocol: /^https?$/, hostname: /^example\.com$/ }), ["https://example.com/"], []],
  httpUrl: [z.httpUrl(), ["https://example.com/"], []],
  hostname: [z.hostname(), ["example.com"], [5]],
  emoji: [z.emoji(), ["😀"], []],
  base64: [z.base64(), ["YWJj", ""], ["a"]],
  base64url: [z.base64url(), ["YWJj"], ["?"]],
  nanoid: [z.nanoid(), ["V1StGXR8_Z5jdHi6B-myT"], ["x"]],
  cuid: [z.cuid(), ["cjld2cjxh0000qzrmn831i7rn"], ["x y"]],
  cuid2: [z.cuid2(), ["tz4a98xxat96iws9zmbrgj3a"], ["X"]],
  ulid: [z.ulid(), ["01ARZ3NDEKTSV4RRFFQ69G5FAV"], ["x"]],
  xid: [z.xid(), ["9m4e2mr0ui3e8a215n4g"], ["x"]],
  ksuid: [z.ksuid(), ["0ujtsYcgvSTl8PAuAdqWYSMnLOv"], ["x"]],
  ipv4: [z.ipv4(), ["127.0.0.1"], ["x"]],
  ipv6: [z.ipv6(), ["::1"], ["x"]],
  cidrv4: [z.cidrv4(), ["10.0.0.0/8"], ["x"]],
  cidrv6: [z.cidrv6(), ["::/0"], ["x"]],
  mac: [z.mac?.() ?? z.string(), ["00:1a:2b:3c:4d:5e"], []],
  e164: [z.e164(), ["+14155552671"], ["x"]],
  jwt: [z.jwt(), ["eyJhbGciOiJIUzI1NiJ9.e30.abc"], []],
  hex: [z.hex?.() ?? z.string(), ["abcd"], []],
  hash: [z.hash?.("sha256") ?? z.string(), ["a".repeat(64)], []],
  "iso date": [z.iso.date(), ["2020-01-31", "2024-02-29"], ["2020-13-01", "x"]],
  "iso time": [z.iso.time(), ["12:30:00"], ["25:00", "x"]],
  "iso datetime": [z.iso.datetime(), ["2020-01-31T12:30:00Z"], ["x"]],
  "iso datetime offset": [z.iso.datetime({ offset: true, local: true, precision: 3 }), ["2020-01-31T12:30:00.123+01:00"], ["x"]],
  "iso duration": [z.iso.duration(), ["P3W", "PT5M", "P1Y2M3DT4H5M6S"], ["P", "PT", "P1W2D", "hello"]],
  stringFormat: [z.stringFormat("code", /^(?!0)\d{3}$/), ["123"], ["012"]],
  templateLiteral: [z.templateLiteral(["v", z.number(), z.enum(["a", "b"])]), ["v1a"], ["x"]],
  enum: [z.enum(["a", "b"]), ["a"], ["c"]],
  nativeEnum: [z.nativeEnum({ One: 1, Two: "two" }), ["two"], ["x"]],
  literal: [z.literal(["a", 1, null]), ["a", 1], ["b"]],
  array: [z.array(z.email()).min(1).max(2), [["a@b.co"]], [[], ["x"]]],
  tuple: [z.tuple([z.string(), z.number()]), [["a", 1]], [[1, "a"]]],
  "tuple rest": [z.tuple([z.string()], z.iso.duration()), [["a", "PT5M"]], [["a", "x"]]],
  object: [z.object({ a: z.email(), b: z.number().optional() }), [{ a: "a@b.co" }], [{}, { a: "x" }]],
  strictObject: [z.strictObject({ a: z.email() }), [{ a: "a@b.co" }], [{ a: "a@b.co", b: 1 }]],
  looseObject: [z.looseObject({ a: z.email() }), [{ a: "a@b.co", b: 1 }], [{ a: "x" }]],
  catchall: [z.object({ a: z.string() }).catchall(z.iso.duration()), [{ a: "x", b: "PT5M" }], [{ a: "x", b: "y" }]],
  "object partial": [z.object({ a: z.email() }).partial(), [{}], [{ a: "x" }]],
  recursive: [category, [{ name: "a", children: [{ name: "b", children: [] }] }], [{ name: "a", children: [{}] }]],
  record: [z.record(z.string(), z.email()), [{ a: "a@b.co" }], [{ a: "x" }]],
  "record keys": [z.record(z.email(), z.number()), [{ "a@b.co": 1 }], [{ x: 1 }]],
  "record regex": [z.record(z.string().regex(/^(?!x)[a-z]+$/), z.number()), [{ abc: 1 }], [{ xyz: 1 }, { abc: "x" }]],
  "record enum": [z.record(z.enum(["a", "b"]), z.number()), [{ a: 1, b: 2 }], [{ a: 1, b: "x" }]],
  partialRecord: [z.partialRecord(z.enum(["a", "b"]), z.number()), [{ a: 1 }], [{ a: "x" }]],
  looseRecord: [z.looseRecord?.(z.string().regex(/^(?!x)[a-z]+$/), z.number()) ?? z.any(), [{ abc: 1, xyz: "s" }], []],
  union: [z.union([z.email(), z.number()]), ["a@b.co", 1], ["x", null]],
  xor: [z.xor?.([z.email(), z.number()]) ?? z.any(), ["a@b.co", 1], []],
  discriminatedUnion: [
    z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("mail"), to: z.email() }),
      z.object({ kind: z.literal("wait"), time: z.iso.duration() }),
    ]),
    [{ kind: "mail", to: "a@b.co" }, { kind: "wait", time: "PT5M" }],
    [{ kind: "mail", to: "x" }, { kind: "wait", time: "x" }, { kind: "y" }],
  ],
  intersection: [z.intersection(z.object({ a: z.email() }), z.object({ b: z.int() })), [{ a: "a@b.co", b: 1 }], [{ a: "a@b.co" }]],
  optional: [z.optional(z.email()), ["a@b.co"], ["x"]],
  nullable: [z.nullable(z.email()), ["a@b.co", null], ["x"]],
  nullish: [z.nullish(z.email()), ["a@b.co", null], ["x"]],
  nonoptional: [z.nonoptional(z.optional(z.email())), ["a@b.co"], ["x"]],
  default: [z.email().default("a@b.co"), ["a@b.co"], ["x"]],
  prefault: [z.email().prefault("a@b.co"), ["a@b.co"], ["x"]],
  catch: [z.email().catch("a@b.co"), ["a@b.co"], []],
  readonly: [z.readonly(z.array(z.email())), [["a@b.co"]], [["x"]]],
  pipe: [z.pipe(z.string(), z.email()), ["a@b.co"], []],
  lazy: [z.lazy(() => z.email()), ["a@b.co"], ["x"]],
  brand: [z.email().brand("mail"), ["a@b.co"], ["x"]],
  describe: [z.email().describe("whom to write to").meta({ title: "Mail", examples: ["a@b.co"] }), ["a@b.co"], ["x"]],
  refine: [z.email().refine(() => true), ["a@b.co"], ["x"]],
  stringbool: [z.stringbool(), [], []],
  json: [z.json(), [1, "a", [null], { a: [1] }], []],
  file: [z.file().min(1).max(5).mime("image/png"), [], []],
  "coerce string": [z.coerce.string(), [], []],
  "coerce number": [z.coerce.number(), [], []],
  "coerce boolean": [z.coerce.boolean(), [], []],
  creditCard: [z.creditCard?.() ?? z.string(), [], []],
  iban: [z.iban?.() ?? z.string(), [], []],
  currencyCode: [z.currencyCode?.() ?? z.string(), [], []],
};

// Those that JSON cannot write, or that zod has no schema for; as `any`, where that is asked for.
const without = {
  bigint: z.bigint(), int64: z.int64(), uint64: z.uint64(), date: z.date(), symbol: z.symbol(), undefined: z.undefined(),
  void: z.void(), nan: z.nan(), map: z.map(z.string(), z.number()), set: z.set(z.string()),
  transform: z.transform((value) => value), promise: z.promise(z.string()), custom: z.custom(() => true),
  function: z.function?.({ input: [z.string()], output: z.string() }), instanceof: z.instanceof(Date),
  codec: z.codec?.(z.string(), z.number(), { decode: Number, encode: String }),
  preprocess: z.preprocess((value) => value, z.email()), exactOptional: z.exactOptional?.(z.email()),
};

// Draft 4 cannot say what names of properties look like.
const only7 = new Set(["record keys", "record regex"]);

const written = [];
for (const target of ["draft-2020-12", "draft-7", "draft-4", "openapi-3.0"]) {
  for (const io of ["input", "output"]) {
    for (const [name, [type, good, bad]] of Object.entries(types)) {
      const draft4 = target === "draft-4" && only7.has(name);
      const schema = z.toJSONSchema(z.object({ value: type }), { target, io });
      written.push({ name, target, io, schema, good, bad: draft4 ? [] : bad });
      if (z.toJSONSchema(type, { target, io }).type === "object") {
        written.push({ name: `${name} itself`, target, io, schema: z.toJSONSchema(type, { target, io }), good: [], bad: [] });
      }
    }
    for (const [name, type] of Object.entries(without)) {
      if (type === undefined) continue;
      let schema;
      try {
        schema = z.toJSONSchema(z.object({ value: type }), { target, io, unrepresentable: "any" });
      } catch {
        continue;
      }
      written.push({ name, target, io, schema, good: [], bad: [] });
    }
    const every = z.object(Object.fromEntries(Object.entries(types).map(([name, [type]]) => [name, type])));
    const schema = z.toJSONSchema(every, { target, io, reused: "ref" });
    written.push({ name: "every type at once", target, io, schema, good: [], bad: [] });
  }
}

const isFormat = (type) => type?._zod?.def?.type === "string";
const formats = Object.keys(z).filter((name) => {
  try {
    return typeof z[name] === "function" && !name.endsWith("Async") && isFormat(z[name]());
  } catch {
    return false;
  }
});
const iso = Object.keys(z.iso).filter((name) => /^[a-z]/.test(name)).map((name) => `iso ${name}`);
console.log(JSON.stringify({ written, formats: [...formats, ...iso] }));
