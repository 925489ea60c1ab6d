//! `/healthz` and `/metrics` for those who watch over the broker.

mod cluster_figures;
mod figures;
mod metrics;
mod sync_time;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use metrics::MetricsSource;

/// Serves until `stop`.
pub async fn serve(listener: TcpListener, source: Arc<MetricsSource>, stop: CancellationToken) {
    let routes = Router::new().route("/healthz", get(healthz)).route("/metrics", get(metrics_text)).with_state(source);
    let served = axum::serve(listener, routes).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!("the http address is not served any more: {error}");
    }
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn metrics_text(State(source): State<Arc<MetricsSource>>) -> Response {
    match source.encode().await {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
