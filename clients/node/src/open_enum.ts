import type { DescEnum, EnumShape } from "@bufbuild/protobuf";

const UNKNOWN = /^UNKNOWN_(\d+)$/;

/** Translates between an enum's numbers on the wire and its names, in a way that survives a newer server. */
export class OpenEnum<Name extends string, Schema extends DescEnum> {
  readonly #descriptor: Schema;
  readonly #numbers: ReadonlyMap<string, number>;

  constructor(descriptor: Schema) {
    this.#descriptor = descriptor;
    this.#numbers = new Map(
      descriptor.values.filter(({ number }) => number !== 0).map(({ localName, number }) => [localName, number]),
    );
  }

  /** The name of a number: the contract's without its prefix, or `UNKNOWN_7` for what this version does not know. */
  name(number: number): Name {
    const known = number === 0 ? undefined : this.#descriptor.value[number];
    return (known?.localName ?? `UNKNOWN_${number}`) as Name;
  }

  /** The inverse. @throws RangeError for what is no name of the enum. */
  number(name: Name): EnumShape<Schema> {
    const number = this.#numbers.get(name) ?? UNKNOWN.exec(name)?.[1];
    if (number === undefined) {
      const names = [...this.#numbers.keys()].join(", ");
      throw new RangeError(`${JSON.stringify(name)} is no ${this.#descriptor.name}: ${names}`);
    }
    return Number(number) as EnumShape<Schema>;
  }

  /** The number of a name that may be absent. */
  numberIf(name: Name | undefined): EnumShape<Schema> | undefined {
    return name === undefined ? undefined : this.number(name);
  }
}
