/** Loaded before every test file: what the environment of whoever runs the tests must not change. */

// fetch() would ask a proxy for hubs on the loopback.
for (const name of Object.keys(process.env))
  if (/^(?:http|https|all)_proxy$/i.test(name)) delete process.env[name];
