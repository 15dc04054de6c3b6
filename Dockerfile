# A small image of the server. Build: docker build -t partita .   Run: docker run -p 10002:10002 -v data:/data partita
# Not built by the tests of this repository, which run where there is no Docker.
FROM rust:1.95-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends libclang-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --profile dist --bin partita

FROM debian:bookworm-slim
COPY --from=build /src/target/dist/partita /usr/local/bin/partita
# The port is published by the user's own choice, so the development key is allowed here.
ENV PARTITA_TABLE_HOST=0.0.0.0 PARTITA_ADMIN_HOST=0.0.0.0 PARTITA_ALLOW_DEVELOPMENT_KEY=true PARTITA_LOCATION=/data
VOLUME /data
EXPOSE 10002 10012
ENTRYPOINT ["partita"]
