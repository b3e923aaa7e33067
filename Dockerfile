# The server as an image: small, not root, with its data in a volume. `docs/deploy.md` shows how to run it.
#
#   docker build -t polylog .
#   docker run --init -p 127.0.0.1:3000:3000 -e POLYLOG_AUTH=open -v polylog-data:/data polylog

ARG NODE=node:26-trixie-slim

# Builds the package that `npm pack` makes, with the console.
FROM ${NODE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
COPY client/package.json client/
COPY console/package.json console/
# The packages of the project need no install scripts to be built; Node is that of the image.
RUN npm ci --ignore-scripts
COPY . .
RUN mkdir /packed /package && npm pack --pack-destination /packed \
  && tar -xzf /packed/polylog-*.tgz -C /package --strip-components=1

# What the server needs at run time, and nothing else.
FROM ${NODE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY client/package.json client/
COPY console/package.json console/
RUN npm ci --omit=dev --ignore-scripts && rm -rf node_modules/@polylog \
  && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete

FROM ${NODE}
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /package ./
RUN mkdir /data && chown node:node /data && chmod 700 /data
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 POLYLOG_DATA=/data
USER node
VOLUME /data
EXPOSE 3000
# With HOST=0.0.0.0 the server starts only if POLYLOG_AUTH says who may use it.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/v1/health`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/bin/polylog.js"]
CMD ["serve"]
