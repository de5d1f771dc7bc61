/** The module, packed, in base64; made by build.mjs. */
declare module "*.wasm.gz" {
  const text: string;
  export default text;
}
