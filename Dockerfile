# One image, three commands: the service (api, worker or both, by ROLES), the simulator, and the command line.
FROM node:24-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# The optional packages bring Node and Postgres for machines that have neither; the image has the one and is given the other.
# What is for reading and for debuggers alone is most of what is left.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund \
  && find node_modules -type f \( -name '*.map' -o -name '*.md' -o -name '*.d.ts' -o -name '*.d.cts' -o -name '*.d.mts' \) -delete

FROM node:24-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
WORKDIR /app
# Of all that is here, the service may write this folder alone; with a database of yours only the simulator does.
RUN mkdir /data && chown node:node /data
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json openapi.yaml openapi.json ./
COPY migrations ./migrations
COPY src ./src
USER node
EXPOSE 3000
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT || 3000) + '/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Node itself is the process that gets SIGTERM, and drains.
CMD ["node", "src/main.ts"]
